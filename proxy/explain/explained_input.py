"""Explanations of what `v3bridge explain` is given: a text, or a file of requests by its kinds of requests."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from proxy import errors
from proxy.explain import inputs
from proxy.explain.explainer import Explainer
from proxy.explain.explanation import ExplainedFile, Explanation, RequestKind
from proxy.redaction import Redaction
from proxy.traffic import estimate, reading
from proxy.traffic.clients import Clients
from proxy.traffic.v3_request import V3Request, redact_request
from proxy.v3 import parameters
from proxy.v3.parsing import match_queries

# Requests of a file are explained by kinds: thousands of them differ in their values, and a handful of kinds says what
# becomes of all.
INVALID = "(invalid)"  # stands for the keys of queries that are no JSON list


class KindKey(NamedTuple):
    """What is equal in all requests of a kind."""

    endpoint: str
    parameters: tuple[str, ...]
    query_keys: tuple[str, ...]
    include: tuple[str, ...]
    has_batches: bool


@dataclass(slots=True)
class _Count:
    """Requests of one kind: the first, with its API key, the ids of all distinct ones, and sums over them."""

    first: V3Request
    apikey: str | None
    occurrences: int = 0
    parts_max: int = 0
    ids: set[bytes] = field(default_factory=set)


def explain_kinds(
    name: str,
    requests: Iterable[tuple[V3Request, str | None]],
    explainer: Explainer,
    application: str | None,
    keyless: bool = False,
) -> ExplainedFile:
    """Explain one request of each kind of a file, the most frequent kind first. `requests` come with their API keys.
    Raises ConfigError."""
    counts: dict[KindKey, _Count] = {}
    for request, apikey in requests:
        _add(counts, request, apikey)
    ordered = sorted(counts.items(), key=lambda item: -item[1].occurrences)
    kinds = tuple(
        RequestKind(
            **key._asdict(),
            requests=len(count.ids),
            occurrences=count.occurrences,
            parts_max=count.parts_max,
            first=count.first.origin,
            example=explainer.explain(count.first, apikey=count.apikey, application=application, keyless=keyless),
        )
        for key, count in ordered
    )
    return ExplainedFile(
        name=name,
        requests=sum(each.requests for each in kinds),
        occurrences=sum(each.occurrences for each in kinds),
        parts_max=sum(each.parts_max for each in kinds),
        kinds=kinds,
    )


def _add(counts: dict[KindKey, _Count], request: V3Request, apikey: str | None) -> None:
    """Count a request. Equal requests of different clients are different: each pays for its own."""
    if apikey and any(apikey in text for pair in request.query for text in pair):
        # Names and include[] are shown, and may hold the key, too.
        request = redact_request(request, Redaction([apikey]))
    count = counts.setdefault(key_of(request), _Count(request, apikey))
    count.occurrences += request.times
    identifier = bytes.fromhex(request.id)
    if identifier not in count.ids:
        count.ids.add(identifier)
        count.parts_max += estimate.worst_case_parts(request)


def key_of(request: V3Request) -> KindKey:
    names = {parameters.bare(name) for name, _ in request.query}
    include = {value for name, value in request.query if parameters.bare(name) == "include"}
    query_keys, has_batches = _query_keys(request) if "queries" in names else ((), False)
    shown = tuple(sorted(names - {"include", "queries"}))
    return KindKey(request.endpoint, shown, query_keys, tuple(sorted(include)), has_batches)


def _query_keys(request: V3Request) -> tuple[tuple[str, ...], bool]:
    """Return the keys of all queries of a request, and whether there are several queries."""
    try:
        raws = match_queries.decode(request.values("queries")[-1])
    except errors.BadRequest:
        return (INVALID,), False
    keys = {key for raw in raws if isinstance(raw, dict) for key in match_queries.non_null(raw)}
    return tuple(sorted(keys)), len(raws) > 1


KEYLESS = (".csv", ".tsv")  # files without API keys


def explain_text(explainer: Explainer, text: str, application: str | None) -> Explanation | ExplainedFile:
    """Explain a request, or the content of a file, such as lines of an access log. Raises ConfigError, SourceError."""
    try:
        return explainer.explain_input(inputs.read_request(text), application)
    except errors.SourceError as error:
        with TemporaryDirectory() as folder:
            file = Path(folder, "input")
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
            try:
                return explain_file(explainer, file, application)
            except errors.SourceError:
                raise error from None


def explain_file(explainer: Explainer, file: Path, application: str | None) -> ExplainedFile:
    """Explain the requests of a file. Raises ConfigError, SourceError."""
    clients, skipped = Clients(), reading.Skipped()
    requests = ((each, clients.key(each.client, "baseline")) for each in reading.read_requests(file, clients, skipped))
    explained = explain_kinds(file.name, requests, explainer, application, file.suffix in KEYLESS)
    return msgspec.structs.replace(explained, skipped={reason: count.times for reason, count in skipped.items()})
