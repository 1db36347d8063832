"""Model of the Nexar services: tokens within their rate limits, and part matches that are billed when they are
executed, whether or not the response arrives.

Takes the place of aiohttp's session, so that all of the proxy's upstream code runs.
"""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

import aiohttp

from proxy.kit.aiohttp_internals.connector import ATTEMPT
from support.simulation.plan import LIMIT

if TYPE_CHECKING:
    from support.simulation.process import Process
    from support.simulation.world import World

TOKEN_SECONDS, RENEWAL_SECONDS = 86_400, 600
BOUNDARY_SECONDS = 60.0
FRESH_SECONDS = 84_600.0  # cache.seconds: a part is paid for once in this time
DELAYS = {"slow": (0.0, 20.0), "late": (1.0, 40.0)}  # seconds until a request is executed


class Reply(NamedTuple):
    """Response as it is sent. Without a status the connection ends; `is_cut`: within the body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}
    is_cut: bool = False


REFUSALS = {  # of requests that are not executed
    "idle": Reply(0),
    "503": Reply(503, b"", {"Retry-After": "2"}),
    "429": Reply(429, b"{}", {"Retry-After": "1"}),
    "exhausted": Reply(200, b'{"errors":[{"message":"You have exceeded your part limit of 100"}]}'),
}
PAGE = b"<html>an error page</html>"
SPOILED = {"lost": Reply(0), "500": Reply(500, PAGE), "html": Reply(200, PAGE)}  # responses after the execution


class Payment(NamedTuple):
    """Query that was billed: when it was sent and executed."""

    sent: float
    executed: float


def parts_of(mpn: str) -> int:
    """How many parts have this number."""
    return 1 + int(mpn[1:]) % 3


class Upstream:
    """Identity and GraphQL service. `billed` are parts by application; `counted` what it says of each month, where it
    may have billed a request twice."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._tokens: dict[str, float] = {}
        self._issued: dict[str, float] = {}
        self._tokens_excused = 0.0
        self._payments: dict[tuple[str, str, str], Payment] = {}
        self.billed: Counter[str] = Counter()
        self._billed_in: Counter[tuple[str, str]] = Counter()
        self.counted: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def revoke(self) -> None:
        """Revoke all tokens."""
        self._tokens.clear()
        self.excuse_tokens()

    def excuse_tokens(self) -> None:
        """Let tokens be requested again: those of a process that ends while it renews them are lost."""
        self._issued.clear()
        self._tokens_excused = self._world.true + 1  # a request on its way is still executed

    def issue_token(self, process: "Process", data: bytes, fault: str) -> Reply:
        """Respond to a token request, which counts whatever the response is."""
        secret, now = parse_qs(data.decode())["client_secret"][0], self._world.true
        self._world.check_tokens(process)
        before = self._issued.get(secret)
        if (
            before
            and now - before < TOKEN_SECONDS - RENEWAL_SECONDS
            and before > max(self._world.excused_until, self._tokens_excused)
        ):
            self._world.violate(f"a token is requested again after {now - before:.3f} s")
        self._issued[secret] = now
        if fault in REFUSALS:
            return REFUSALS[fault]
        token = f"token-{len(self._tokens)}-{self._world.true}"
        self._tokens[token] = self._world.true + TOKEN_SECONDS
        return Reply(200, json.dumps({"access_token": token, "expires_in": TOKEN_SECONDS}).encode())

    def execute(self, process: "Process", data: bytes, token: str, sent: float, fault: str) -> Reply:
        """Execute a GraphQL operation, and bill it."""
        request = json.loads(data)
        if request["operationName"] == "supplyCounts":
            return self._supply_counts(request["variables"]["id"])
        if self._tokens.get(token, 0.0) <= self._world.true:
            return Reply(401, b'{"errors":[{"message":"The token is not valid"}]}')
        application = {"US": "limited", "DE": "open", "FR": "spare"}[request["variables"]["country"]]
        matches = [self._match(process, application, query, sent) for query in request["variables"]["queries"]]
        parts = sum(len(match["parts"]) for match in matches)
        for _ in range(2 if fault == "twice" else 1):
            self.counted[application][self._world.month(self._world.true)] += parts
        self.billed[application] += parts
        self._check_limit(application, sent + self._world.offset, parts)
        self._world.audit()
        return Reply(200, json.dumps({"data": {"supMultiMatch": matches}}).encode(), is_cut=fault == "cut")

    def _check_limit(self, application: str, sent: float, parts: int) -> None:
        """Check the limit of the month in which a request was sent, by the clock of its machine."""
        month = self._world.month(sent - BOUNDARY_SECONDS)
        if month == self._world.month(sent + BOUNDARY_SECONDS):  # else a request may be reserved in the month before
            self._billed_in[application, month] += parts
            if application == "limited" and self._billed_in[application, month] > LIMIT:
                self._world.violate(f"more than {LIMIT} parts of {application} are billed in {month}")

    def _match(self, process: "Process", application: str, query: dict[str, Any], sent: float) -> dict[str, Any]:
        mpn, start = query["mpn"], query["start"]
        number, now = parts_of(mpn), self._world.true
        part = {"id": mpn, "v3uid": None, "mpn": mpn, "akaMpns": [], "shortDescription": f"{now}"}
        parts = ([part] * number)[start : start + query["limit"]]
        if parts:
            key = application, process.version, mpn
            before = self._payments.get(key)
            if before and now - before.executed < FRESH_SECONDS and before.sent > self._world.excused_until:
                self._world.violate(f"{mpn} of {application} is paid for again after {now - before.executed:.3f} s")
            self._payments[key] = Payment(sent, now)
        return {"hits": number, "error": None, "parts": parts}

    def _supply_counts(self, application: str) -> Reply:
        used = self.counted[application][self._world.month(self._world.true)]
        counts = {"partCounter": used, "partLimit": 1_000_000}
        return Reply(200, json.dumps({"data": {"admApplicationById": {"supplyCounts": counts}}}).encode())


class _Content:
    """Body of a response."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._pieces = [reply.body]
        self.total_bytes = len(reply.body)

    async def readany(self) -> bytes:
        if self._reply.is_cut:
            raise aiohttp.ClientPayloadError("cut")
        return self._pieces.pop() if self._pieces else b""


class SimulatedSession:
    """aiohttp's session as far as the proxy uses it."""

    connector = None

    def __init__(self, process: "Process", timeout: aiohttp.ClientTimeout) -> None:
        self._process = process
        self._world = process.world
        self.timeout = timeout

    async def close(self) -> None:
        pass

    @asynccontextmanager
    async def post(
        self,
        url: str,
        *,
        data: bytes,
        headers: Mapping[str, str],
        allow_redirects: bool,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[Any]:
        attempt = ATTEMPT.get()
        assert attempt is not None
        is_identity = url.endswith("/token")
        fault = self._world.fault("identity" if is_identity else "upstream")
        attempt.reused = fault == "idle"
        if fault == "connect" or self._process.is_dead:
            attempt.sent = False
            raise aiohttp.ClientConnectorError(None, OSError("refused"))  # type: ignore[arg-type] # names the host only
        arrival: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        self._send(arrival, is_identity, data, token, fault)
        async with asyncio.timeout(timeout.total):
            try:
                reply = await asyncio.wait_for(arrival, timeout.sock_read)
            except TimeoutError as error:
                raise aiohttp.SocketTimeoutError from error
            if not reply.status:
                raise aiohttp.ServerDisconnectedError
            content = _Content(reply)
            yield type("Response", (), {"status": reply.status, "content": content, "headers": reply.headers})

    def _send(self, arrival: "asyncio.Future[Reply]", is_identity: bool, data: bytes, token: str, fault: str) -> None:
        """Let the service execute the request, and its response arrive. Both go on without the process."""
        process, world, rng, sent = self._process, self._world, self._process.rng, self._world.true
        suspended = world.suspended

        def arrive(reply: Reply) -> None:
            if not arrival.done() and not process.is_dead:
                arrival.set_result(reply if world.suspended == suspended else Reply(0))  # connections end by it

        def execute() -> None:
            if is_identity:
                reply = world.upstream.issue_token(process, data, fault)
            elif fault in REFUSALS:
                reply = REFUSALS[fault]
            else:
                reply = world.upstream.execute(process, data, token, sent, fault)
            if fault != "hang":
                delay = rng.uniform(0, 15) if fault == "slow" else rng.uniform(0.01, 0.3)
                world.after(delay, lambda: arrive(SPOILED.get(fault, reply)))

        if fault == "late":  # the connection ends before the service executes the request
            world.after(rng.uniform(0.01, 0.3), lambda: arrive(Reply(0)))
        world.after(rng.uniform(*DELAYS.get(fault, (0.01, 0.4))), execute)
