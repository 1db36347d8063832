"""Report on clients: who called in the last 30 days, what they lose, and which API keys are unused."""

from collections import defaultdict

import msgspec

from proxy.gateway.core import StoredState
from proxy.kit.wording import rfc3339

DAYS = 30


class ClientRow(msgspec.Struct, frozen=True):
    """Requests of one program: of an API key, to an endpoint, with a User-Agent. `unsupported` names the parameters
    that were ignored and the fields that had no source; `last` is the time of the last one. Both names are empty
    without a valid API key."""

    application: str
    key: str
    endpoint: str
    user_agent: str
    unsupported: str
    requests: int
    last: str


class KeyRow(msgspec.Struct, frozen=True):
    """API key of the configuration: parts used in its current period, and its requests; `last` is null where none
    came."""

    application: str
    key: str
    parts: int
    requests: int
    last: str | None


class ClientReport(msgspec.Struct, frozen=True):
    """Requests since `first_day` (UTC): by program, the most requests first, and by API key in the order of the
    configuration."""

    first_day: str
    clients: list[ClientRow]
    keys: list[KeyRow]


async def read(state: StoredState) -> ClientReport:
    """Read the last DAYS days. Raises StoreUnavailable."""
    counts: dict[tuple[str, str, str, str, str], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for row in await state.clients(DAYS):
        program = row.application, row.key, row.endpoint, row.user_agent, row.detail
        before, last = counts[program]
        counts[program] = before + row.requests, max(last, row.last)
    clients = [
        ClientRow(*program, requests, rfc3339(last))
        for program, (requests, last) in sorted(counts.items(), key=lambda each: (-each[1][0], each[0]))
    ]
    keys = [_key(row.application, row.key, row.used, clients) for row in await state.usage() if row.key is not None]
    return ClientReport(state.first_day(DAYS).isoformat(), clients, keys)


def _key(application: str, key: str, parts: int, clients: list[ClientRow]) -> KeyRow:
    own = [each for each in clients if (each.application, each.key) == (application, key)]
    last = max((each.last for each in own), default=None)
    return KeyRow(application, key, parts, sum(each.requests for each in own), last)
