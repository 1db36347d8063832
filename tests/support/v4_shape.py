"""Results of rewritten v4 documents in the shape that v4 clients expect: with the old names of types."""

from typing import Any

import graphql

from proxy.v4 import documents


def with_v4_types(data: Any, document: graphql.DocumentNode, operation: graphql.OperationDefinitionNode) -> Any:
    """Return result data with v4's names of types, wherever the document selects `__typename`."""
    definitions = document.definitions
    fragments = {node.name.value: node for node in definitions if isinstance(node, graphql.FragmentDefinitionNode)}
    return _typed(data, [operation], fragments)


def _typed(data: Any, nodes: list[Any], fragments: dict[str, Any]) -> Any:
    if isinstance(data, list):
        return [_typed(item, nodes, fragments) for item in data]
    if not isinstance(data, dict) or not any(node.selection_set for node in nodes):
        return data
    fields: dict[str, list[Any]] = {}
    waiting = [selection for node in nodes for selection in node.selection_set.selections]
    while waiting:
        node = waiting.pop()
        if isinstance(node, graphql.FieldNode):
            fields.setdefault((node.alias or node.name).value, []).append(node)
        else:
            found = fragments[node.name.value] if isinstance(node, graphql.FragmentSpreadNode) else node
            waiting += found.selection_set.selections
    return {
        key: documents.client_names().get(value, value)
        if fields[key][0].name.value == "__typename"
        else _typed(value, fields[key], fragments)
        for key, value in data.items()
    }
