"""Actions of the v3 endpoints: parse the parameters of a request, call the pipeline, encode the response."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.gateway import Client, GatewayRequest, ResponseMetadata, V3Objects
from proxy.kit.clock import Clock
from proxy.mapping.loader import Mappings
from proxy.v3 import encoding, endpoints, requests
from proxy.v3.encoding import Bound, Parameters
from proxy.v3.endpoints import Endpoint

CHOOSING = ("include", "show", "hide", "slice[")  # the beginnings of parameters that name fields
NOTHING = frozenset({("",)})  # show[] with unknown names only: no field is shown
SLICE = re.compile(r"\[?(-?\d{1,9})?:(-?\d{1,9})?\]?", re.ASCII)


class AuthenticatedRequest(NamedTuple):
    """One authenticated v3 request. `path` and `uid` are those of an endpoint whose path has a uid."""

    endpoint: Endpoint
    parameters: Parameters
    client: Client
    metadata: ResponseMetadata
    path: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class V3Actions:
    """Actions of the endpoints, with the mappings of v3 or of another dialect."""

    objects: V3Objects
    mappings: Mappings
    clock: Clock

    match_response = staticmethod(requests.match_response)

    async def execute(self, received: AuthenticatedRequest, gzip: bool = False) -> encoding.EncodedBody:
        """Execute a request; return the body of its response, compressed for a client that accepts `gzip`. Raises the
        errors that become error responses."""
        metadata, features = received.metadata, received.client.application.features
        response_format = encoding.ResponseFormat.of(received.parameters)
        sourceless = self._sourceless(received, features) if received.parameters.names(CHOOSING) else {}
        metadata.sourceless = tuple(f"{parameter} ({reason})" for parameter, reason in sourceless.items())
        if received.endpoint.action == "match":
            asked = requests.parse_match(received.parameters)
            metadata.unsupported += tuple(asked.unknown)
            results = await self.objects.match_parts(self._caller(received), asked.request)
            result = self.match_response(asked, results, int((self.clock.monotonic() - metadata.since) * 1000))
        elif received.endpoint.action == "search":
            result = await self._search(received)
        else:
            result = await self._get(received)
        if metadata.lacking:
            fetched = self._sourceless(received, features - metadata.lacking)
            metadata.unsupported += tuple(parameter for parameter in fetched if parameter not in sourceless)
        encoded = msgspec.json.encode(result)
        # Bodies recorded in 2018 and 2019 are indented without pretty_print, too. A JSON reader sees no difference.
        if response_format.pretty_print:
            encoded = json.dumps(json.loads(encoded), sort_keys=True, indent=4).encode()
        body = encoding.encode_body(encoded, response_format, gzip)
        if metadata.unsupported:
            body = body._replace(headers=body.headers | encoding.unsupported(metadata.unsupported))
        return body

    async def _search(self, received: AuthenticatedRequest) -> Any:
        """All searches (contract v3-rest.md §1.1, §3.6). Only a search of parts returns country and currency."""
        request = requests.parse_search(received.parameters)
        # v3 ignored what it did not know, but the response lacks what looks like a filter, and has to name it.
        named = received.parameters.names("filter")
        received.metadata.unsupported += tuple(
            name for name in named if name != "filter[queries]" and not requests.FILTER.fullmatch(name)
        )
        caller = self._caller(received)
        items: Sequence[Any]
        if received.endpoint.object == "Part":
            page = await self.objects.search_parts(caller, request)
            items, hits, counts = page.items, page.hits, page.details
            market = {"user_country": caller.context.country, "user_currency": caller.context.currency}
        else:
            items, counts = await self.objects.search_listed(caller, received.endpoint.object, request)
            hits, market = counts.hits, {}
        msec = int((self.clock.monotonic() - received.metadata.since) * 1000)
        return requests.search_response(request, items, hits, counts, msec) | market

    async def _get(self, received: AuthenticatedRequest) -> Any:
        """One object without an envelope, or for get_multi those that are known, by uid (contract v3-rest.md §1)."""
        uid, name, is_one = received.uid, received.endpoint.object, received.endpoint.action == "get"
        if is_one and (suggestion := endpoints.instead_of_uid(received.path, uid)):
            raise errors.NotFound(suggestion)
        uids = [uid] if is_one else received.parameters.uids()
        caller = self._caller(received)
        objects: dict[str, Any]
        if name == "Part":
            objects = await self.objects.parts(caller, uids)
        else:
            objects = await self.objects.listed(caller, name, uids)
        if is_one and uid not in objects:
            raise errors.NotFound(f"there is no {name.lower()} with the uid {uid[:40]!r}")
        return objects[uid] if is_one else objects

    def _caller(self, received: AuthenticatedRequest) -> GatewayRequest:
        """Client and projection of a request: the last of its parameters to be parsed."""
        application = received.client.application
        projection = model.Projection(features=application.features)
        if received.parameters.names(CHOOSING):
            projection = parse_projection(
                received.parameters, projection.features, self.mappings, received.endpoint.object
            )
        return GatewayRequest(received.client, projection, application.context, received.metadata)

    def _sourceless(self, received: AuthenticatedRequest, features: frozenset[str]) -> dict[str, str]:
        """Return the include[], show[] and slice[] that name a field without source under a plan with `features`, as
        the client wrote them, with the reasons. Others of the default response do not count, or every request would
        fail."""
        parameters = received.parameters
        named = {f"{name}[]={text}": text for name in ("include", "show") for text in parameters.texts(name) if text}
        named |= {name: name[6:-1] for name in parameters.names("slice[")}
        return {
            parameter: reason
            for parameter, field in named.items()
            if (reason := self.mappings.missing_source(received.endpoint.object, tuple(field.split(".")), features))
        }


def parse_projection(
    parameters: Parameters, features: frozenset[str], mappings: Mappings, name: str
) -> model.Projection:
    """Parse include[], show[], hide[] and slice[] for object `name`, without unknown fields. Raises BadRequest."""
    sliced = parameters.names("slice[")
    Bound.PROJECTION.check(sum(map(len, map(parameters.texts, ("include", "show", "hide")))) + len(sliced))
    slices: dict[model.Path, tuple[int | None, int | None]] = {}
    for each in sliced:  # `slice[offers]=[0:1]` and `slice[offers]=0:1` (contract v3-rest.md §2)
        value, path = parameters.text(each) or "", tuple(each[6:-1].split("."))
        range_match = SLICE.fullmatch(value.strip())
        if not range_match:
            raise errors.BadRequest(f"{each[:60]} must be a range like [0:5], not {value[:40]!r}")
        start, stop = (int(number) if number else None for number in range_match.groups())
        slices |= dict.fromkeys(mappings.spelled(name, path), (start, stop))
    show, hide = (
        frozenset(path for text in parameters.texts(each) for path in mappings.spelled(name, tuple(text.split("."))))
        for each in ("show", "hide")
    )
    if not show and any(parameters.texts("show")):  # show[]= is as good as none
        show = NOTHING
    include = frozenset(parameters.texts("include")) & mappings.rules[name].hidden
    return model.Projection(include, show, hide, tuple(slices.items()), features)
