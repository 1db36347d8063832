"""Whom the old service serves: apikeys, the HTTP requests of each, and how many it may make in a second.

v3 counted requests, not parts (contract v3-rest.md §5). A key is a secret: nothing here shows one.
"""

from collections import Counter
from collections.abc import Sequence

from proxy.kit import clock as clocks
from proxy.kit import windows
from proxy.sandbox.legacy_v3 import refusal


class Keys:
    """The apikeys of one service."""

    def __init__(self, apikeys: Sequence[str], per_second: int | None, clock: clocks.Clock) -> None:
        limits = () if per_second is None else (windows.Window(per_second, 1),)
        self._windows = {apikey: windows.Windows(limits, clock) for apikey in apikeys}
        self._counted: Counter[str] = Counter()

    def admit(self, apikey: str | None) -> str:
        """The key of a request that is served, which is counted. Refuses all others."""
        if not apikey:
            raise refusal.bad("apikey argument is missing")
        window = self._windows.get(apikey)
        if window is None:
            raise refusal.Refusal(403, "Forbidden request")
        if window.try_take() > 0:
            raise refusal.Refusal(429, "Too many requests")
        self._counted[apikey] += 1
        return apikey

    def requests(self, apikey: str) -> int:
        """HTTP requests of a key that were served, errors among them."""
        return self._counted[apikey]

    def counted(self) -> dict[str, int]:
        """The same of all keys, which are called key 1, key 2, … in the order of the settings."""
        return {f"key {number}": self._counted[apikey] for number, apikey in enumerate(self._windows, 1)}
