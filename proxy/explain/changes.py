"""What a client must change to send a request to the Nexar API itself, without the proxy; changes.yaml says it."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from proxy import config
from proxy.explain.explanation import Change, ExplainedOperation, ParameterValue, UnderstoodQuery
from proxy.kit import located_yaml
from proxy.planning.exact_match import WILDCARD
from proxy.v3.endpoints import Endpoint


class Addresses(NamedTuple):
    """Where a client sends its requests, and the scope of its token."""

    graphql_url: str
    token_url: str
    scope: str


def addresses(settings: config.Config) -> Addresses:
    """Return the addresses of the configuration; those of the Nexar API for one that has the sandbox."""
    upstream = settings.upstream
    if upstream == "sandbox":
        return NEXAR
    return Addresses(upstream.graphql_url, upstream.token_url, upstream.scope)


# Contract graphql.md §3.1, §4.1.
NEXAR = Addresses("https://api.nexar.com/graphql", "https://identity.nexar.com/connect/token", "supply.domain")


PARAMETERS = ("include", "slice", "filter", "facet", "stats", "exact_only", "callback")  # with changes of their own


def request_changes(
    endpoint: Endpoint,
    settings: config.Config,
    operations: tuple[ExplainedOperation, ...],
    queries: tuple[UnderstoodQuery, ...],
    parameters: tuple[ParameterValue, ...],
) -> tuple[Change, ...]:
    """Return the changes that this request needs, those that every request needs first."""
    given = {each.name.partition("[")[0] for each in parameters if not each.is_default}
    names = ["credentials", "request", "errors"]
    if endpoint.object == "Part":
        names += _changes_of_parts(endpoint, {each.name for each in operations if each.condition is None}, queries)
    else:
        names.append("search of a list" if endpoint.action == "search" else "uids of a list")
    names += [name for name in PARAMETERS if name in given]
    changes = map(_all_changes().__getitem__, names)
    return tuple(msgspec.structs.replace(change, nexar=_filled(change.nexar, settings)) for change in changes)


def _filled(text: str, settings: config.Config) -> str:
    for name, value in addresses(settings)._asdict().items():
        text = text.replace(name.upper(), value)
    return text


def _changes_of_parts(endpoint: Endpoint, operations: set[str], queries: tuple[UnderstoodQuery, ...]) -> Iterator[str]:
    yield from ("market", "cost")
    if endpoint.action == "match" and "supMultiMatch" in operations:
        yield "queries"
    numbers = [query.keys["mpn"] or query.keys["mpn_or_sku"] or "" for query in queries if query.error is None]
    if any(WILDCARD in number for number in numbers):
        yield "wildcards"
    elif "supSearchMpn" in operations:
        yield "partial matches"
    if any(query.keys["reference"] is not None for query in queries):
        yield "reference"
    if "supParts" in operations:
        yield "uids of parts"


@functools.cache
def _all_changes() -> dict[str, Change]:
    texts = located_yaml.load(Path(__file__).with_name("changes.yaml")).data
    return {name: msgspec.convert({"subject": name, **text}, Change) for name, text in texts.items()}
