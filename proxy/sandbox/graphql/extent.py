"""How deep and how wide the operations of a document are, with their fragments in place.

Used where documents are read, before anything works its way through them. Nothing is spread out for it: each fragment
is measured once, however often it is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

# A field in the operation itself is at depth 1. Introspection by the usual tools goes to 15. Ours: the contract has no
# number.
MAX_DEPTH = 25
# The default of the service's software; it counts fields as they are written.
MAX_FIELDS = 2048


@dataclass(frozen=True, slots=True)
class Extent:
    """Levels, and fields in all of them."""

    depth: int
    fields: int


@dataclass(frozen=True, slots=True)
class _Outline:
    """What a selection has by itself, and the fragments in it with the levels above them."""

    own: Extent
    spreads: tuple[tuple[str, int], ...]


def faults(document: DocumentNode) -> list[GraphQLError]:
    """One error, in the words of the service's software, for each cap that an operation goes over. None for a document
    whose fragments go in circles: validation refuses that."""
    operations = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    fragments = {
        one.name.value: _outline(one.selection_set)
        for one in document.definitions
        if isinstance(one, FragmentDefinitionNode)
    }
    try:
        extents = _extents(fragments)
    except CycleError:
        return []
    found = (_faults(one, _whole(_outline(one.selection_set), extents)) for one in operations)
    return [error for errors in found for error in errors]


def _faults(operation: OperationDefinitionNode, extent: Extent) -> list[GraphQLError]:
    found = []
    if extent.depth > MAX_DEPTH:
        message = (
            f"The GraphQL document has an execution depth of {extent.depth} "
            f"which exceeds the max allowed execution depth of {MAX_DEPTH}."
        )
        extensions = {"allowedExecutionDepth": MAX_DEPTH, "detectedExecutionDepth": extent.depth}
        found.append(GraphQLError(message, operation, extensions=extensions))
    if extent.fields > MAX_FIELDS:
        message = f"The GraphQL request document contains more than {MAX_FIELDS} fields. Parsing aborted."
        found.append(GraphQLError(message, operation, extensions={"code": "HC0011"}))
    return found


def _extents(fragments: Mapping[str, _Outline]) -> dict[str, Extent]:
    """Each fragment with those inside it. A name that is not there has nothing."""
    names = {name: [inner for inner, _ in outline.spreads] for name, outline in fragments.items()}
    found: dict[str, Extent] = {}
    for name in TopologicalSorter(names).static_order():
        found[name] = _whole(fragments[name], found) if name in fragments else Extent(0, 0)
    return found


def _whole(outline: _Outline, extents: Mapping[str, Extent]) -> Extent:
    inner = [(extents.get(name, Extent(0, 0)), above) for name, above in outline.spreads]
    depths = [above + extent.depth for extent, above in inner if extent.depth]
    return Extent(max(outline.own.depth, *depths, 0), outline.own.fields + sum(one.fields for one, _ in inner))


def _outline(selection_set: SelectionSetNode) -> _Outline:
    fields, deepest = 0, 0
    spreads: list[tuple[str, int]] = []
    left: list[tuple[SelectionSetNode, int]] = [(selection_set, 1)]
    while left:
        selections, depth = left.pop()
        for one in selections.selections:
            if isinstance(one, FragmentSpreadNode):
                spreads.append((one.name.value, depth - 1))
            elif isinstance(one, FieldNode):
                fields, deepest = fields + 1, max(deepest, depth)
                if one.selection_set is not None:
                    left.append((one.selection_set, depth + 1))
            elif isinstance(one, InlineFragmentNode):
                left.append((one.selection_set, depth))
    return _Outline(Extent(deepest, fields), tuple(spreads))
