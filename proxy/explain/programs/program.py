"""Writes what asks Nexar for what a v3 request asked: a Python program that prints v3's names, or requests by curl."""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, get_args
from urllib.parse import quote

from proxy.explain import understanding
from proxy.explain.changes import addresses
from proxy.explain.explainer import Explainer
from proxy.explain.explanation import Explanation, UnderstoodClient
from proxy.explain.programs import flows, mapping_functions, rows
from proxy.explain.programs.fields import read, restricted
from proxy.explain.programs.python_program import PythonProgram, comments
from proxy.mapping.compiler import compile_object
from proxy.model import MappingContext, Path
from proxy.traffic.v3_request import SAFE, V3Request, parse_target
from proxy.v3 import endpoints
from proxy.v3.parsing.request_parameters import RequestParameters

Language = Literal["python", "curl"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

READABLE = SAFE + '"'
REQUEST_MAX = 300  # characters of the v3 request in the comment at the top

CURL_USAGE = "Usage: NEXAR_CLIENT_ID=… NEXAR_CLIENT_SECRET=… sh this_file.sh"
# Secret and token come by standard input: others see the arguments of a process.
_CURL_LOGIN = """\
if [ -z "${NEXAR_CLIENT_ID:-}" ] || [ -z "${NEXAR_CLIENT_SECRET:-}" ]; then
  echo "set NEXAR_CLIENT_ID and NEXAR_CLIENT_SECRET to those of your Nexar application" >&2
  exit 2
fi
response=$(printf '%s' "$NEXAR_CLIENT_SECRET" | curl --silent --show-error --fail-with-body "$TOKEN_URL" \\
  --data grant_type=client_credentials --data-urlencode "client_id=$NEXAR_CLIENT_ID" \\
  --data-urlencode client_secret@- --data-urlencode "scope=$SCOPE") || { echo "$TOKEN_URL: $response" >&2; exit 1; }
token=$(printf '%s' "$response" | sed -n 's/.*"access_token" *: *"\\([^"]*\\)".*/\\1/p')
[ -n "$token" ] || { echo "$TOKEN_URL: no access token" >&2; exit 1; }"""
_CURL_SEND = """\
printf 'Authorization: Bearer %s\\n' "$token" | curl --silent --show-error --fail-with-body "$GRAPHQL_URL" \\
  --header @- --header 'Content-Type: application/json' \\
  --data-binary {} || {{ echo "$GRAPHQL_URL: no response" >&2; exit 1; }}
echo"""


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
    write_functions = partial(mapping_functions.ProgramSource, context=_context(explanation, client, cuts))
    flow, compiled = flows.program_flow(
        explanation,
        parameters,
        mappings,
        lambda needs: compile_object(mappings, explanation.object, projection, needs, write_functions),
    )
    notes = list(_notes(explanation, () if language == "curl" else flow.omitted, language))
    if language == "curl":
        title = f"Sends to Nexar what v3's {explanation.endpoint} asked, and prints the responses."
        return _curl_requests([title, CURL_USAGE, *notes], explainer, flows.graphql_requests(explanation, flow))
    return PythonProgram(
        title=f"Asks Nexar for what v3's {explanation.endpoint} returned, and prints it with v3's names.",
        notes=notes,
        addresses=addresses(explainer.settings),
        client=(client.country, client.currency),
        flow=flow,
        mapping=compiled.source,
        tables=rows.table_rows(mappings.tables),
    ).source()


def _curl_requests(notes: list[str], explainer: Explainer, requests: Iterable[flows.GraphQLRequest]) -> str:
    """Return a script for the shell that prints each response in a line."""
    graphql_url, token_url, scope = map(shlex.quote, addresses(explainer.settings))
    settings = (
        f"GRAPHQL_URL=${{NEXAR_GRAPHQL_URL:-{graphql_url}}}\nTOKEN_URL=${{NEXAR_TOKEN_URL:-{token_url}}}\nSCOPE={scope}"
    )
    bodies = (json.dumps({"query": request.document, "variables": request.variables}) for request in requests)
    sent = [_CURL_SEND.format(shlex.quote(body)) for body in bodies]
    return "\n\n".join(["#!/bin/sh\n" + comments(notes), "set -eu", settings, _CURL_LOGIN, *sent]) + "\n"


def _request(explanation: Explanation) -> V3Request:
    """Return the explained request, without parameters that have no effect: an explanation hides their values."""
    path, query, _ = parse_target(explanation.request)
    endpoint = endpoints.of(path)
    assert endpoint is not None  # noqa: S101 - else the explanation has an error
    return V3Request(path, tuple(pair for pair in query if understanding.is_read(endpoint, pair[0])))


def _refusal(explanation: Explanation) -> str:
    error = explanation.error
    return f"v3 refuses this request: {error.status} {error.message}" if error else "this is not a v3 request"


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
