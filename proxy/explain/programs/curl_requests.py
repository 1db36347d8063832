"""Writes the GraphQL requests of a v3 request as a script for the shell, with curl."""

import json
import shlex
from collections.abc import Iterable

from proxy.explain.changes import Addresses
from proxy.explain.programs.flows import GraphQLRequest
from proxy.explain.programs.python_program import comments

USAGE = "Usage: NEXAR_CLIENT_ID=… NEXAR_CLIENT_SECRET=… sh this_file.sh"
# Secret and token come by standard input: others see the arguments of a process.
_LOGIN = """\
if [ -z "${NEXAR_CLIENT_ID:-}" ] || [ -z "${NEXAR_CLIENT_SECRET:-}" ]; then
  echo "set NEXAR_CLIENT_ID and NEXAR_CLIENT_SECRET to those of your Nexar application" >&2
  exit 2
fi
response=$(printf '%s' "$NEXAR_CLIENT_SECRET" | curl --silent --show-error --fail-with-body "$TOKEN_URL" \\
  --data grant_type=client_credentials --data-urlencode "client_id=$NEXAR_CLIENT_ID" \\
  --data-urlencode client_secret@- --data-urlencode "scope=$SCOPE") || { echo "$TOKEN_URL: $response" >&2; exit 1; }
token=$(printf '%s' "$response" | sed -n 's/.*"access_token" *: *"\\([^"]*\\)".*/\\1/p')
[ -n "$token" ] || { echo "$TOKEN_URL: no access token" >&2; exit 1; }"""
_SEND = """\
printf 'Authorization: Bearer %s\\n' "$token" | curl --silent --show-error --fail-with-body "$GRAPHQL_URL" \\
  --header @- --header 'Content-Type: application/json' \\
  --data-binary {} || {{ echo "$GRAPHQL_URL: no response" >&2; exit 1; }}
echo"""


def write(title: str, notes: Iterable[str], addresses: Addresses, requests: Iterable[GraphQLRequest]) -> str:
    """Return the script; it prints each response in a line."""
    graphql_url, token_url, scope = map(shlex.quote, addresses)
    settings = (
        f"GRAPHQL_URL=${{NEXAR_GRAPHQL_URL:-{graphql_url}}}\nTOKEN_URL=${{NEXAR_TOKEN_URL:-{token_url}}}\nSCOPE={scope}"
    )
    bodies = (json.dumps({"query": request.document, "variables": request.variables}) for request in requests)
    sent = [_SEND.format(shlex.quote(body)) for body in bodies]
    head = "#!/bin/sh\n" + comments([title, USAGE, *notes])
    return "\n\n".join([head, "set -eu", settings, _LOGIN, *sent]) + "\n"
