"""Names of the objects that unknown uids denote, looked up at the service that has the uid. Free of charge."""

import asyncio
from collections.abc import Callable, Sequence

from proxy.tools.compare.judging import unknown_uids
from proxy.tools.compare.judging.findings import Finding
from proxy.tools.compare.running.exchange import Exchange, Exchanger
from proxy.traffic import v3_response
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideName, SideResponse


class NameLookups:
    """Names by uid, each looked up once in a run. `record` gets each look-up that had a response."""

    def __init__(self, exchanger: Exchanger, record: Callable[[V3Request, Exchange], None]) -> None:
        self._exchanger = exchanger
        self._record = record
        self._names: dict[str, str] = {}
        self._lock = asyncio.Lock()  # requests in flight at the same time look up the same uids

    async def names(self, found: Sequence[Finding], client: str) -> dict[str, str]:
        """Return the names of the objects in findings of unknown uids, as far as the services have them. An empty name
        is that of a uid that its service does not know.
        """
        async with self._lock:
            for pair in unknown_uids.pairs([each.difference for each in found]):
                await self._look_up("candidate", pair.path, pair.candidate, client)
                if not pair.name:
                    await self._look_up("baseline", pair.path, pair.baseline, client)
        return self._names

    async def _look_up(self, side: SideName, path: str, uid: str, client: str) -> None:
        if uid in self._names:
            return
        request = V3Request(path + uid, client=client)
        exchange = await self._exchanger.look_up(side, request)
        response = exchange.baseline or exchange.candidate
        if response is None or response.failure:
            return
        self._record(request, exchange)
        name = _name(response)
        if name is not None:
            self._names[uid] = name


def _name(response: SideResponse) -> str | None:
    """Return the name in a response; empty for a 404, None where the response says nothing."""
    if response.status == 404:
        return ""
    try:
        body = v3_response.read_json(response.body).value if response.status == 200 else None
    except ValueError:
        return None
    name = body.get("name") if isinstance(body, dict) else None
    return name if isinstance(name, str) else None
