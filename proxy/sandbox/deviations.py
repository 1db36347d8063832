"""Deviations of the sandbox from the contract, by name: each changes the behaviour in one respect.

They show that a check of the assumptions finds what differs. A name is that of the assumption that it contradicts.
"""

from collections.abc import Mapping
from typing import Any

DEVIATIONS: Mapping[str, Mapping[str, Any]] = {
    "missing-token-status": {"unauthorized_status": 200},
}
"""Changed fields of `Behaviour` by the name of the deviation."""
