"""Deviations of the sandbox from the contract, by name: each changes the behaviour in one respect.

They show that a check of the assumptions finds what differs. A name is that of the assumption that it contradicts.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.sandbox.behaviour import Behaviour

DEVIATIONS: Mapping[str, Mapping[str, Any]] = {
    "missing-token-status": {"unauthorized_status": 200},
}
"""Changed fields of `Behaviour` by the name of the deviation."""


def behaviour(names: Iterable[str]) -> Behaviour:
    """Return the behaviour with these deviations. Raises ValueError for an unknown name, and for two deviations that
    change the same field to different values."""
    changes: dict[str, Any] = {}
    for name in names:
        if name not in DEVIATIONS:
            raise ValueError(f"unknown deviation {name!r}; {_known(name)}")
        for field, value in DEVIATIONS[name].items():
            if changes.setdefault(field, value) != value:
                raise ValueError(f"the deviation {name} contradicts another one: both change {field}")
    return Behaviour(**changes)


def _known(name: str) -> str:
    similar = difflib.get_close_matches(name, DEVIATIONS, n=3)
    return f"similar ones are {', '.join(similar)}" if similar else f"known are {', '.join(sorted(DEVIATIONS))}"
