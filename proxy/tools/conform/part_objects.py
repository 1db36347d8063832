"""Part objects in a response: what the service bills (contract graphql.md §6)."""

from functools import lru_cache
from typing import Any

from graphql import FieldNode, GraphQLError, OperationDefinitionNode, parse

from proxy.tools.conform.assumptions import ProbeRequest
from proxy.tools.conform.probes import ProbeResponse


def count(request: ProbeRequest, response: ProbeResponse) -> int:
    """Return the number of part objects at the root fields of a GraphQL response. Parts that are not selected cannot
    be counted; the ledger of the service may have them."""
    data = response.body.get("data") if isinstance(response.body, dict) else None
    if not isinstance(data, dict):
        return 0
    return sum(_parts(name, data.get(key)) for name, key in _root_fields(request.document))


@lru_cache(maxsize=256)
def _root_fields(document: str) -> tuple[tuple[str, str], ...]:
    """Return name and response key of each root field."""
    try:
        definitions = parse(document, no_location=True).definitions
    except GraphQLError:
        return ()  # a probe with a deliberate mistake
    operations = (each for each in definitions if isinstance(each, OperationDefinitionNode))
    nodes = (node for each in operations for node in each.selection_set.selections if isinstance(node, FieldNode))
    return tuple((node.name.value, (node.alias or node.name).value) for node in nodes)


def _parts(name: str, value: Any) -> int:
    match name:
        case "supSearch" | "supSearchMpn":
            return sum(isinstance(result.get("part"), dict) for result in (value or {}).get("results") or ())
        case "supMultiMatch":
            return sum(len(match.get("parts") or ()) for match in value or ())
        case "supParts":
            return sum(part is not None for part in value or ())
        case _:
            return 0
