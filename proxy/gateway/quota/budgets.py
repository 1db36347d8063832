"""How the accounts stand, told to whoever watches: gauges for machines, a line in the log at 50, 80 and 95 %.

Used by quota.py with every look at the store. A threshold is told once a period, by one of all workers: which one, the
store decides.
"""

from collections.abc import Iterable, Sequence

import structlog

from proxy.gateway.quota.accounts import LIFETIME, QuotaAccount
from proxy.kit.windows import Window
from proxy.stores.protocols import EntryUsage, Store
from proxy.telemetry.metrics import Metrics

THRESHOLDS = (50, 80, 95)  # per cent of a limit, used or in doubt

_MONTH = (Window(1, 62 * 86_400.0),)
_LIFETIME = (Window(1, 36_525 * 86_400.0),)

log = structlog.get_logger()


class Watch:
    """Tells of some accounts."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._told: set[tuple[str, str, int]] = set()

    def show(self, standings: Iterable[tuple[QuotaAccount, EntryUsage]]) -> None:
        """Set the gauges."""
        for account, state in standings:
            label = (account.name,)
            self._metrics.parts_used[label] = state.used
            self._metrics.parts_uncertain[label] = state.doubtful
            self._metrics.parts_reserved[label] = state.reserved
            if account.limit is not None:
                self._metrics.parts_remaining[label] = max(0, account.limit - state.used - state.doubtful)

    async def warn(self, standings: Sequence[tuple[QuotaAccount, EntryUsage]]) -> None:
        """Log each threshold that was passed and of which nobody has told. Raises StoreUnavailable."""
        for account, state in standings:
            for threshold in passed(state.used + state.doubtful, account.limit):
                await self._tell(account, state, threshold)

    async def _tell(self, account: QuotaAccount, state: EntryUsage, threshold: int) -> None:
        told = (account.name, state.line.period, threshold)
        if told in self._told:
            return
        once = _LIFETIME if state.line.period == LIFETIME else _MONTH
        first = await self._store.take(f"warned:{account.name} {state.line.period} {threshold}", once) == 0.0
        self._told.add(told)
        if first:
            log.warning(
                "quota threshold reached",
                quota_account=account.name,
                percent=threshold,
                period=state.line.period,
                used=state.used,
                uncertain=state.doubtful,
                limit=account.limit,
            )


def passed(used: int, limit: int | None) -> list[int]:
    """The thresholds that so many parts have reached."""
    return [] if not limit else [threshold for threshold in THRESHOLDS if used * 100 >= threshold * limit]
