"""Whether a value that is written in a document fits its place, in the words of the service (contract
graphql.md §3.3).

Only what stands in the document is looked at. A variable inside of it is passed over: its type is checked
where it is declared, its value when it arrives.
"""

from collections.abc import Iterator

from graphql import (
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNonNull,
    ListValueNode,
    NullValueNode,
    ObjectValueNode,
    ValueNode,
    VariableNode,
    is_required_input_field,
    print_ast,
)
from graphql.utilities import validate_input_literal


def faults(node: ValueNode, expected: GraphQLInputType, argument: str, specification: str) -> Iterator[GraphQLError]:
    """Everything in the literal `node` that does not fit the type `expected`."""
    if isinstance(node, VariableNode):
        return
    bare = expected.of_type if isinstance(expected, GraphQLNonNull) else expected
    if isinstance(bare, GraphQLList) and isinstance(node, ListValueNode):
        for item in node.values:
            yield from faults(item, bare.of_type, argument, specification)
    elif isinstance(bare, GraphQLList) and not isinstance(node, NullValueNode):
        yield from faults(node, bare.of_type, argument, specification)
    elif isinstance(bare, GraphQLInputObjectType) and isinstance(node, ObjectValueNode):
        yield from _object_faults(node, bare, specification)
    elif not _fits(node, expected):
        yield _wrong_type(node, expected, argument, specification)


def _object_faults(
    node: ObjectValueNode, expected: GraphQLInputObjectType, specification: str
) -> Iterator[GraphQLError]:
    given = {field.name.value: field for field in node.fields}
    for name, field in given.items():
        known = expected.fields.get(name)
        if known is None:
            message = f"The specified input object field `{name}` does not exist."
            extensions = {"field": name, "specifiedBy": specification + "Input-Object-Field-Names"}
            yield GraphQLError(message, field, extensions=extensions)
        else:
            yield from faults(field.value, known.type, name, specification)
    for name, known in expected.fields.items():
        if name not in given and is_required_input_field(known):
            extensions = {"field": name, "specifiedBy": specification + "Input-Object-Required-Fields"}
            yield GraphQLError(f"`{name}` is a required field and cannot be null.", node, extensions=extensions)


def _fits(node: ValueNode, expected: GraphQLInputType) -> bool:
    found: list[GraphQLError] = []
    validate_input_literal(node, expected, lambda error, _path: found.append(error))
    return not found


def _wrong_type(node: ValueNode, expected: GraphQLInputType, argument: str, specification: str) -> GraphQLError:
    extensions = {
        "argument": argument,
        "argumentValue": print_ast(node),
        "locationType": str(expected),
        "specifiedBy": specification + "Values-of-Correct-Type",
    }
    message = "The specified argument value does not match the argument type."
    return GraphQLError(message, node, extensions=extensions)
