"""Validation rules of the GraphQL specification, with the messages of the service (contract graphql.md §3.3).

One rule is looser than the specification: an object may be selected without sub-fields (it is then null). Rules without
a message in the contract keep that of graphql-core. In literals only what is in the document is checked: the type of a
variable is checked where it is declared, its value when the request is executed.
"""

from collections.abc import Iterator
from typing import Any

import graphql
from graphql.utilities import validate_input_literal
from graphql.validation.rules.variables_in_allowed_position import allowed_variable_usage

SPECIFICATION = "http://spec.graphql.org/October2021/#sec-"


def _error(
    message: str, nodes: graphql.Node | list[graphql.Node], section: str, **extensions: str
) -> graphql.GraphQLError:
    """Return an error that names the section of the specification, and further extensions before it."""
    return graphql.GraphQLError(message, nodes, extensions={**extensions, "specifiedBy": SPECIFICATION + section})


def literal_errors(
    node: graphql.ValueNode, expected: graphql.GraphQLInputType, argument: str
) -> Iterator[graphql.GraphQLError]:
    if isinstance(node, graphql.VariableNode):
        return
    bare = expected.of_type if isinstance(expected, graphql.GraphQLNonNull) else expected
    if isinstance(bare, graphql.GraphQLList) and isinstance(node, graphql.ListValueNode):
        for item in node.values:
            yield from literal_errors(item, bare.of_type, argument)
    elif isinstance(bare, graphql.GraphQLList) and not isinstance(node, graphql.NullValueNode):
        yield from literal_errors(node, bare.of_type, argument)
    elif isinstance(bare, graphql.GraphQLInputObjectType) and isinstance(node, graphql.ObjectValueNode):
        yield from _object_faults(node, bare)
    elif not _fits(node, expected):
        yield _error(
            "The specified argument value does not match the argument type.",
            node,
            "Values-of-Correct-Type",
            argument=argument,
            argumentValue=graphql.print_ast(node),
            locationType=str(expected),
        )


def _object_faults(
    node: graphql.ObjectValueNode, expected: graphql.GraphQLInputObjectType
) -> Iterator[graphql.GraphQLError]:
    given_fields = {field.name.value: field for field in node.fields}
    for name, field in given_fields.items():
        known = expected.fields.get(name)
        if known is None:
            message = f"The specified input object field `{name}` does not exist."
            yield _error(message, field, "Input-Object-Field-Names", field=name)
        else:
            yield from literal_errors(field.value, known.type, name)
    for name, known in expected.fields.items():
        if name not in given_fields and graphql.is_required_input_field(known):
            message = f"`{name}` is a required field and cannot be null."
            yield _error(message, node, "Input-Object-Required-Fields", field=name)


def _fits(node: graphql.ValueNode, expected: graphql.GraphQLInputType) -> bool:
    errors: list[graphql.GraphQLError] = []
    validate_input_literal(node, expected, lambda error, _path: errors.append(error))
    return not errors


class FieldsOnCorrectType(graphql.FieldsOnCorrectTypeRule):
    def enter_field(self, node: graphql.FieldNode, *_args: Any) -> None:
        parent = self.context.get_parent_type()
        if not parent or self.context.get_field_def():
            return
        name = node.name.value
        message = f"The field `{name}` does not exist on the type `{parent}`."
        section = "Field-Selections-on-Objects-Interfaces-and-Unions-Types"
        shown = node.alias.value if node.alias else name
        self.report_error(_error(message, node, section, type=str(parent), field=name, responseName=shown))


class KnownArgumentNames(graphql.KnownArgumentNamesRule):
    def enter_argument(self, arg_node: graphql.ArgumentNode, *args: Any) -> None:
        field, parent = self.context.get_field_def(), self.context.get_parent_type()
        if self.context.get_argument() or not field or not parent:
            return
        name, of = arg_node.name.value, args[3][-1].name.value
        message = f"The argument `{name}` does not exist."
        self.report_error(_error(message, arg_node, "Argument-Names", type=str(parent), field=of, argument=name))


class ProvidedRequiredArguments(graphql.ProvidedRequiredArgumentsRule):
    def leave_field(self, field_node: graphql.FieldNode, *_args: Any) -> graphql.VisitorAction:
        field = self.context.get_field_def()
        given_names = {argument.name.value for argument in field_node.arguments or ()}
        for name, argument in (field.args if field else {}).items():
            if name not in given_names and graphql.is_required_argument(argument):
                message, of = f"The argument `{name}` is required.", field_node.name.value
                parent = str(self.context.get_parent_type())
                self.report_error(
                    _error(message, field_node, "Required-Arguments", type=parent, field=of, argument=name)
                )
        return None


class ScalarLeafs(graphql.ScalarLeafsRule):
    """A scalar has no sub-fields. Unlike in the specification an object may have none, too."""

    def enter_field(self, node: graphql.FieldNode, *_args: Any) -> None:
        kind = self.context.get_type()
        if not kind or not node.selection_set or not graphql.is_leaf_type(graphql.get_named_type(kind)):
            return
        name = node.name.value
        message = (
            f"`{name}` returns a scalar value. Selections on scalars or enums are never allowed, "
            "because they are the leaf nodes of any GraphQL query."
        )
        self.report_error(
            _error(
                message,
                node,
                "Leaf-Field-Selections",
                declaringType=str(self.context.get_parent_type()),
                field=name,
                type=str(kind),
                responseName=node.alias.value if node.alias else name,
            )
        )


class ValuesOfCorrectType(graphql.ValuesOfCorrectTypeRule):
    """Literals fit the types of their arguments. Variables are checked by other rules."""

    def enter_argument(self, node: graphql.ArgumentNode, *_args: Any) -> graphql.VisitorAction:
        argument = self.context.get_argument()
        if argument:
            for error in literal_errors(node.value, argument.type, node.name.value):
                self.report_error(error)
            # The literal is checked as a whole; the values inside are not visited.
            return graphql.SKIP
        return None


class NoUndefinedVariables(graphql.NoUndefinedVariablesRule):
    def enter_operation_definition(self, operation: graphql.OperationDefinitionNode, *_args: Any) -> None:
        declared = {node.variable.name.value for node in operation.variable_definitions or ()}
        used = (usage.node.name.value for usage in self.context.get_recursive_variable_usages(operation))
        missing = dict.fromkeys(name for name in used if name not in declared)
        # One error names all of them; graphql-core has one for each.
        if missing:
            message = f"The following variables were not declared: {', '.join(missing)}."
            self.report_error(_error(message, operation, "All-Variable-Uses-Defined"))


class NoUnusedVariables(graphql.NoUnusedVariablesRule):
    def enter_operation_definition(self, operation: graphql.OperationDefinitionNode, *_args: Any) -> None:
        used = {usage.node.name.value for usage in self.context.get_recursive_variable_usages(operation)}
        declared = (node.variable.name.value for node in operation.variable_definitions or ())
        unused = [name for name in declared if name not in used]
        if unused:
            message = f"The following variables were not used: {', '.join(unused)}."
            self.report_error(_error(message, operation, "All-Variables-Used"))


class VariablesInAllowedPosition(graphql.VariablesInAllowedPositionRule):
    def leave_operation_definition(self, operation: graphql.OperationDefinitionNode, *_args: Any) -> None:
        for usage in self.context.get_recursive_variable_usages(operation):
            name = usage.node.name.value
            definition, place = self.var_def_map.get(name), usage.type
            kind = definition and graphql.type_from_ast(self.context.schema, definition.type)
            if not place or not kind or not definition:
                continue
            default = definition.default_value
            if allowed_variable_usage(self.context.schema, kind, default, place, usage.default_value):
                continue
            message = f"The variable `{name}` is not compatible with the type of the current location."
            self.report_error(
                _error(
                    message,
                    [definition, usage.node],
                    "All-Variable-Usages-are-Allowed",
                    variable=name,
                    variableType=str(kind),
                    locationType=str(place),
                )
            )


SERVICE_RULES = (
    FieldsOnCorrectType,
    KnownArgumentNames,
    ProvidedRequiredArguments,
    ScalarLeafs,
    ValuesOfCorrectType,
    NoUndefinedVariables,
    NoUnusedVariables,
    VariablesInAllowedPosition,
)


# The service's take the places of those that they extend; the others are graphql-core's.
RULES: tuple[type[graphql.ASTValidationRule], ...] = (
    *(next((own for own in SERVICE_RULES if issubclass(own, rule)), rule) for rule in graphql.specified_rules),
    *graphql.recommended_rules,
)
