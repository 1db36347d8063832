"""Deviations of the sandbox from the contract, by name: each changes the behavior in one respect.

They show that a check of the assumptions finds what differs. The table is deviations.toml.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from nexar_sandbox.behavior import Behavior


def _read(path: Path) -> dict[str, dict[str, Any]]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    behaviors = {name: msgspec.convert(changes, Behavior) for name, changes in table.items()}
    return {name: {field: getattr(behaviors[name], field) for field in changes} for name, changes in table.items()}


DEVIATIONS: Mapping[str, Mapping[str, Any]] = _read(Path(__file__).with_suffix(".toml"))


def deviate(names: Iterable[str], base: Behavior | None = None) -> Behavior:
    """Return `base`, by default the contract's behavior, with these deviations. Raises ValueError for an unknown name,
    and for two deviations that change the same field to different values."""
    changes: dict[str, Any] = {}
    for name in names:
        if name not in DEVIATIONS:
            raise ValueError(f"unknown deviation {name!r}; {_known(name)}")
        for field, value in DEVIATIONS[name].items():
            if changes.setdefault(field, value) != value:
                raise ValueError(f"the deviation {name} contradicts another one: both change {field}")
    return replace(base or Behavior(), **changes)


def _known(name: str) -> str:
    similar = difflib.get_close_matches(name, DEVIATIONS, n=3)
    return f"similar ones are {', '.join(similar)}" if similar else f"known are {', '.join(sorted(DEVIATIONS))}"
