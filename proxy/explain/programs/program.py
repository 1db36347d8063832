"""Writes what asks Nexar for what a v3 request asked: a Python program that prints v3's names, or requests by curl."""

from collections.abc import Iterator, Sequence
from typing import Literal, get_args
from urllib.parse import quote

from proxy.explain import understanding
from proxy.explain.changes import addresses
from proxy.explain.explainer import Explainer
from proxy.explain.explanation import Explanation, UnderstoodClient
from proxy.explain.programs import curl_requests, flows, mapping_functions, rows
from proxy.explain.programs.fields import read, restricted
from proxy.explain.programs.python_program import ProgramText, PythonProgram
from proxy.model import MappingContext, Path
from proxy.traffic.v3_request import SAFE, V3Request, parse_target
from proxy.v3 import endpoints
from proxy.v3.parsing.request_parameters import RequestParameters

Language = Literal["python", "curl"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

READABLE = SAFE + '"'
REQUEST_MAX = 300  # characters of the v3 request in the comment at the top


def write(explainer: Explainer, explanation: Explanation, language: Language, fields: str | None = None) -> str:
    """Return the program for an explained request; `fields` names those that it prints, or a file that has them.

    Raises NoProgramError for a request that v3 refuses, and for one that needs other requests first; SourceError for
    invalid fields.
    """
    mappings, client = explainer.mappings, explanation.client
    if explanation.error is not None or client is None:
        raise flows.NoProgramError(_refusal(explanation))
    request = _request(explanation)
    if fields is not None:
        request = restricted(request, read(fields, request, mappings), mappings)
    explanation = explainer.explain(request, application=client.application, for_program=True)
    parameters = RequestParameters(request.target())
    projection, cuts = parameters.projection(frozenset(client.features), mappings, explanation.object)
    flow, compiled = flows.of_request(explanation, parameters, mappings, projection)
    if language == "curl":
        title = f"Sends to Nexar what v3's {explanation.endpoint} asked, and prints the responses."
        requests = flows.graphql_requests(explanation, flow)
        return curl_requests.write(title, _notes(explanation, (), language), addresses(explainer.settings), requests)
    mapping = mapping_functions.read(compiled, _context(explanation, client, cuts))
    text = ProgramText(
        title=f"Asks Nexar for what v3's {explanation.endpoint} returned, and prints it with v3's names.",
        notes=list(_notes(explanation, flow.omitted, language)),
        addresses=addresses(explainer.settings),
        client=(client.country, client.currency),
        flow=flow,
        mapping=mapping,
        tables=rows.of_mappings(mappings.tables),
    )
    return PythonProgram(text).source()


def _request(explanation: Explanation) -> V3Request:
    """Return the explained request, without parameters that have no effect: an explanation hides their values."""
    path, query, _ = parse_target(explanation.request)
    endpoint = endpoints.of(path)
    assert endpoint is not None  # noqa: S101 - else the explanation has an error
    return V3Request(path, tuple(pair for pair in query if understanding.is_read(endpoint, pair[0])))


def _refusal(explanation: Explanation) -> str:
    error = explanation.error
    return f"v3 refuses this request: {error.status} {error.message}" if error else "this is no request of v3"


def _context(explanation: Explanation, client: UnderstoodClient, cuts: dict[Path, slice]) -> MappingContext:
    # Any uid: a program has it as a parameter.
    requested = "uid" if explanation.object == "Part" and explanation.action in ("get", "get_multi") else None
    return MappingContext(client.country, client.currency, requested, cuts)


def _notes(explanation: Explanation, omitted: Sequence[str], language: str) -> Iterator[str]:
    """Yield the paragraphs at the top. What a client sent is percent-encoded: it cannot end the comment."""
    request = _request(explanation)
    pairs = (f"{quote(name, safe=READABLE)}={quote(value, safe=READABLE)}" for name, value in request.query)
    target = f"/v3{quote(request.path, safe='/')}?{'&'.join(pairs)}".removesuffix("?")
    shown = target if len(target) <= REQUEST_MAX else f"{target[:REQUEST_MAX]}…"
    yield f"v3 request: {shown}"
    parts = explanation.cost.parts_max if explanation.cost else 0
    yield f"Each run costs at most {parts} part{'s' * (parts != 1)}." if parts else "It costs no parts."
    if omitted:
        yield "Left out: " + "; ".join(omitted) + "."
    yield f"Written by v3bridge explain --as {language}. It is yours: change what you like."
