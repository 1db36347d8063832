"""Client for the upstream's count of an application's parts (contract graphql.md §5.4). The query costs no parts.

Needs the token of a user, because tokens of applications are not accepted for it. The vendor asks for at most one such
request a day; gateway/quota/reconciliation.py keeps to that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import aiohttp
import msgspec

from proxy import config, errors, model
from proxy.kit.clock import Clock
from proxy.upstream import classify, http_post

_DOCUMENT = (
    "query supplyCounts($id: String!) { admApplicationById(id: $id) { supplyCounts { partCounter partLimit } } }"
)


class PartCounts(NamedTuple):
    """Parts used in the current period, and the limit of the plan."""

    used: int
    limit: int


class _Counts(msgspec.Struct, frozen=True, rename="camel"):
    part_counter: int
    part_limit: int


class _Application(msgspec.Struct, frozen=True, rename="camel"):
    supply_counts: _Counts | None


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    adm_application_by_id: _Application | None


class _Response(msgspec.Struct, frozen=True):
    data: _Data | None = None
    errors: list[model.GraphQLError] | None = None


@dataclass(frozen=True, slots=True)
class _Operation:
    payload: bytes
    name: str = "supplyCounts"
    decode: Callable[[bytes], _Response] = msgspec.json.Decoder(_Response).decode


class SupplyCountsClient:
    """Client of the GraphQL service at `url`."""

    def __init__(self, session: aiohttp.ClientSession, url: str, clock: Clock) -> None:
        self._session = session
        self._url = url
        self._clock = clock

    async def fetch(self, application_id: str, token: config.Secret) -> PartCounts | None:
        """Return the counts of an application; None if it is unknown or has no part limit.

        Raises CredentialsRefused, QueryRefused, UpstreamUnreachable, UpstreamUnreadable or UpstreamFault.
        """
        body = {"operationName": "supplyCounts", "query": _DOCUMENT, "variables": {"id": application_id}}
        operation = _Operation(msgspec.json.encode(body))
        headers = {
            "Authorization": f"Bearer {token.reveal()}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        # Not through GraphQLClient: it would use the token of an application, retry, and count into the circuit
        # breaker.
        reply = await http_post.post(
            self._session, http_post.HttpRequest(self._url, classify.SERVICE, operation.payload, headers, False)
        )
        # Before `classify.data`: the token is a user's, so none of the application's is invalidated for it.
        if reply.status == 401:
            raise errors.CredentialsRefused(f"{classify.SERVICE} does not take the user's token")
        data = classify.data(reply, classify.decode(operation, reply), self._clock.now())
        counts = data.adm_application_by_id and data.adm_application_by_id.supply_counts
        return PartCounts(counts.part_counter, counts.part_limit) if counts else None
