"""Records of clients: who still calls, and what they lose; API keys that no application has; failures. A process counts
them, and writes them to the store every INTERVAL_SECONDS; one that is killed loses what it has seen since.

Texts of clients are bounded: of an API key and day only so many callers are counted separately, so that a program that
sends a new User-Agent with each request fills neither the memory nor the store.
"""

import asyncio
import functools
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

import cachetools
import msgspec
import structlog

from proxy import errors
from proxy.kit import printable
from proxy.model import GRAPHQL_PATHS, WRAPPER, FailureDetail, Seen
from proxy.redaction import Redaction
from proxy.store.protocol import CLIENT, DAY_SECONDS, FAILURE, SEEN_MAX, UNKNOWN_KEY
from proxy.store.store import Store
from proxy.v3.endpoints import ENDPOINTS, PREFIXES

INTERVAL_SECONDS = 10.0  # between two writes
OTHERS = "(others)"  # the user agent of callers beyond the limits
CALLERS_MAX = 100  # of an API key and day, in one process
UNKNOWN_MAX = 20  # the same without a valid API key: such requests need no credentials
PENDING_MAX = 10_000  # counts that wait for a store that is unavailable
TEXT_MAX = 200  # characters of a User-Agent, and of the unsupported uses of a request
MESSAGE_MAX, TARGET_MAX = 1_000, 4_000  # characters of the message and of the target of a failed request
AGENTS_MAX = 1_000  # user agents in which keys are not looked for again
ADDRESS_KEYS_MAX = 20  # unknown API keys of an address and day: one program that guesses does not replace others' keys
GROUPS_MAX = 1_000  # API keys, and addresses of unknown ones, whose callers are told apart

# Refusals for want of a valid API key; the last is that of an address that sent too many wrong ones.
_KEY_ERRORS = frozenset({"ForbiddenKey", "MissingKey", "TooManyRequests"})
_ENDPOINTS = {
    f"{prefix}{endpoint.path}": endpoint.path.removeprefix("/") for endpoint in ENDPOINTS for prefix in PREFIXES
} | {path: path[1:] for path in (*GRAPHQL_PATHS, WRAPPER, "/sheet")}

log = structlog.get_logger()


class SeenRequests:
    """Counts of this process that are not in the store yet. `keys` hides API keys in texts of clients; `shown` returns
    the target of a failed request for display, which may hold any secret before."""

    def __init__(
        self,
        store: Store,
        keys: Redaction | None = None,
        shown: Callable[[str, Redaction], str] = lambda *_: "",
    ) -> None:
        self._store, self._redaction, self._shown_target = store, keys or Redaction(), shown
        self._counts: dict[Seen, list[float]] = {}  # number of requests, and the time of the last
        # What is counted separately: of a day, an application and its key; or of a day and an address.
        self._groups: cachetools.LRUCache[tuple[object, ...], set[Seen]] = cachetools.LRUCache(GROUPS_MAX)
        # Of what is in no target, for which keys in it need not be looked for.
        self._agent = functools.lru_cache(AGENTS_MAX)(functools.partial(_shown, self._redaction))
        self._failures: deque[tuple[Seen, FailureDetail]] = deque(maxlen=SEEN_MAX[FAILURE])
        self._id, self._rows = "", list[Seen]()  # that the store has not confirmed

    def add_client(
        self,
        at: float,
        route: str,
        user_agent: str,
        *,
        application: str | None,
        key: str | None,
        target: str = "",
        unsupported: tuple[str, ...] = (),
        error: str | None = None,
    ) -> None:
        """Count a request of a client. One that was refused before its API key was read has none. API keys in `target`
        are hidden, whether an application has them or not."""
        endpoint, uses = _ENDPOINTS.get(route), ""
        if endpoint is None or (key is None and error not in _KEY_ERRORS):
            return
        if key is not None and not unsupported:  # the target has no API key but that of a known client
            agent = self._agent(user_agent)
        else:
            hidden = self._redaction.including(target)
            uses, agent = _shown(hidden, ", ".join(unsupported)), _shown(hidden, user_agent)
        request = Seen(CLIENT, int(at // DAY_SECONDS), application or "", key or "", endpoint, agent, uses)
        self._count(request, request[:4], CALLERS_MAX if key else UNKNOWN_MAX, at)

    def add_unknown(self, apikey: str, digest: str, address: str, user_agent: str, at: float) -> None:
        """Count a request with an API key that no application has. Nothing is kept of the key itself."""
        agent = _shown(self._redaction.hiding({apikey}), user_agent)
        request = Seen(UNKNOWN_KEY, int(at // DAY_SECONDS), "", digest, address, agent, "")
        self._count(request, (UNKNOWN_KEY, request.day, address), ADDRESS_KEYS_MAX, at)

    def _count(self, request: Seen, group: tuple[object, ...], limit: int, at: float) -> None:
        """Count a request among so many kinds of its group; of others all clients are one kind, and of unknown keys,
        which are among the clients without a key, nothing is counted."""
        counted = self._counts.get(request)
        if counted is None:
            kinds = self._groups.setdefault(group, set())
            if request not in kinds and (len(kinds) >= limit or len(self._counts) >= PENDING_MAX):
                if request.kind == UNKNOWN_KEY:
                    return
                request = request._replace(user_agent=OTHERS, detail="")
            else:
                kinds.add(request)
            counted = self._counts.setdefault(request, [0, 0.0])
        counted[0] += 1
        counted[1] = max(counted[1], at)

    def add_failure(
        self, at: float, route: str, application: str | None, key: str | None, detail: FailureDetail
    ) -> None:
        """Keep a failed request. API keys are hidden when it is taken: of most failures of a flood nothing is kept."""
        if len(detail.target) > TARGET_MAX:  # to hide keys in it would take too long
            detail = msgspec.structs.replace(detail, message="", target="")
        seen = Seen(FAILURE, int(at // DAY_SECONDS), application or "", key or "", route, "", "", 1, at)
        self._failures.append((seen, detail))

    def take(self) -> Iterator[Seen]:
        """Yield all that was seen, and begin again with nothing."""
        counts, failures = self._counts, self._failures
        self._counts, self._failures = {}, deque(maxlen=SEEN_MAX[FAILURE])
        self._agent.cache_clear()  # API keys may have been added
        yield from (seen._replace(requests=int(requests), last=last) for seen, (requests, last) in counts.items())
        for failure, detail in failures:
            redaction = self._redaction.including(detail.target)
            message = printable(redaction.text(detail.message))[:MESSAGE_MAX]
            kept = msgspec.structs.replace(detail, message=message, target=self._shown_target(detail.target, redaction))
            yield failure._replace(detail=msgspec.json.encode(kept).decode())

    async def write(self) -> None:
        """Write all that was seen. Raises StoreUnavailable: it waits for the next call."""
        await self._add()  # under the same id, so that they are added once
        self._id = secrets.token_hex(16)
        for row in self.take():
            self._rows.append(row)
            if row.kind == FAILURE:  # to hide keys in it takes a millisecond
                await asyncio.sleep(0)
        await self._add()

    async def _add(self) -> None:
        if self._rows:
            await self._store.add_seen(self._id, self._rows)
            self._rows = []

    async def close(self) -> None:
        """Write what is left."""
        with suppress(errors.StoreUnavailable):
            await self.write()
        if self._rows:
            log.warning("caller counts lost", requests=sum(row.requests for row in self._rows))


def _shown(redaction: Redaction, sent: str) -> str:
    """Return a text without API keys and control characters, shortened."""
    return printable(redaction.text(sent))[:TEXT_MAX]
