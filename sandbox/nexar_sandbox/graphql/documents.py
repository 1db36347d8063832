"""GraphQL documents: parsed and validated once, and cached, because clients send the same ones again and again."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import graphql

from nexar_sandbox.graphql import errors, schema, validation_rules

MAX_TOKENS = 20_000
MAX_ERRORS = 50
# Prefix of the root fields of design data.
DESIGN_PREFIX = "des"
TOKEN_IN_INPUT = frozenset({"desOnCommentUpdated"})


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A parsed document, valid if `errors` is empty; without a node if it could not be parsed."""

    node: graphql.DocumentNode | None
    errors: tuple[dict[str, Any], ...]

    @property
    def operations(self) -> list[graphql.OperationDefinitionNode]:
        definitions = self.node.definitions if self.node else ()
        return [definition for definition in definitions if isinstance(definition, graphql.OperationDefinitionNode)]

    @property
    def root_nodes(self) -> list[graphql.SelectionNode]:
        return [node for operation in self.operations for node in operation.selection_set.selections]

    def selected(self, operation_name: str | None) -> graphql.OperationDefinitionNode | None:
        """Return the operation to execute; None if that is ambiguous."""
        names = [(operation.name.value if operation.name else None, operation) for operation in self.operations]
        found = [operation for name, operation in names if operation_name in (None, name)]
        return found[0] if len(found) == 1 else None

    def input_token(self, variables: Mapping[str, Any]) -> str | None:
        """Return the access token in the input of a subscription, where clients of the service cannot send headers."""
        field = self.first_field()
        if field is None or field.name.value not in TOKEN_IN_INPUT:
            return None
        input_value = next(
            (argument.value for argument in field.arguments or () if argument.name.value == "input"), None
        )
        value = graphql.value_from_ast_untyped(input_value, dict(variables)) if input_value else None
        token = value.get("token") if isinstance(value, dict) else None
        return token if isinstance(token, str) else None

    def first_field(self) -> graphql.FieldNode | None:
        """Return the first field at the root, for the path of an error that is about the whole document."""
        return next((node for node in self.root_nodes if isinstance(node, graphql.FieldNode)), None)

    def is_introspection(self) -> bool:
        roots = self.root_nodes
        return bool(roots) and all(
            isinstance(node, graphql.FieldNode) and node.name.value.startswith("__") for node in roots
        )

    def is_async(self) -> bool:
        """Return true if a root field is design data, for which resolvers wait for other services, or may be because it
        is in a fragment."""
        return any(
            not isinstance(node, graphql.FieldNode) or node.name.value.startswith(DESIGN_PREFIX)
            for node in self.root_nodes
        )


@lru_cache(maxsize=256)
def read(text: str) -> ParsedDocument:
    """Return the document of this text. All sandboxes of a process share them: a test run starts hundreds, and sends
    each the same ones."""
    try:
        node = graphql.parse(text, max_tokens=MAX_TOKENS, allow_empty_selection_sets=False)
        found = graphql.validate(schema.build(), node, validation_rules.RULES, max_errors=MAX_ERRORS)
    except graphql.GraphQLError as error:
        return ParsedDocument(None, (errors.with_code(error, "HC0011"),))
    except RecursionError:
        too_deep = {"message": "The document is nested too deeply.", "extensions": {"code": "HC0011"}}
        return ParsedDocument(None, (too_deep,))
    return ParsedDocument(node, tuple({**error.formatted} for error in found))


def root_names(operation: graphql.OperationDefinitionNode | None) -> tuple[str, ...]:
    """Return the distinct names of the root fields, in order, without those in fragments."""
    nodes = operation.selection_set.selections if operation else ()
    return tuple(dict.fromkeys(node.name.value for node in nodes if isinstance(node, graphql.FieldNode)))
