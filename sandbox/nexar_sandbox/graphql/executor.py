"""Execution by graphql-core, with five differences that the service needs.

A response has a maximum of fields. An object selected without sub-fields is null and not resolved at all. A Float
with a whole value is written as an integer, as recorded. A scalar field without resolver, like most fields of a
response, is read directly, and lists of objects are completed directly; each halves the time of a multi-match.
"""

import functools
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple, cast

import graphql
from graphql.execution.collect_fields import FieldDetailsList, GroupedFieldSet, collect_fields
from graphql.execution.execute import assume_not_async_iterable, assume_not_awaitable, create_source_event_stream
from graphql.execution.values import get_argument_values
from graphql.pyutils import Path

from nexar_sandbox.graphql import context, errors

LEAF = "leaf"
EXACT = {"String": str, "ID": str, "Time": str, "DateTime": str, "Int": int, "Float": float, "Boolean": bool}


class LeafReader(NamedTuple):
    """Reader of a scalar field without resolver: the attribute, and the Python type that needs no serialization."""

    read: Callable[[Any], Any]
    exact: type
    nullable: bool


NOTHING = LeafReader(lambda _: None, type(None), nullable=True)  # of an object that is selected without sub-fields


def set_leaf_reader(field: graphql.GraphQLField, read: Callable[[Any], Any]) -> None:
    """Let the field be read directly, if it is a scalar without arguments."""
    exact = EXACT.get(str(graphql.get_nullable_type(field.type)))
    if exact is not None and not field.args:
        field.extensions[LEAF] = LeafReader(read, exact, not isinstance(field.type, graphql.GraphQLNonNull))


class RootField(NamedTuple):
    """A root field of the operation with its arguments (defaults filled in). `key` is its name in the response."""

    name: str
    key: str
    arguments: dict[str, Any]
    node: graphql.FieldNode


FieldReader = tuple[str, FieldDetailsList, Callable[[Any], Any] | None, type | None, bool]


class SupplyExecutor(graphql.Executor[context.ResolverContext]):
    max_fields: int
    fields_left: int

    @functools.cached_property
    def _kept_readers(self) -> dict[int, tuple[GroupedFieldSet, list[FieldReader]]]:
        return {}

    def root_fields(self) -> list[RootField]:
        """Return the root fields of the operation. Raises GraphQLError for an invalid argument."""
        root = self.schema.get_root_type(self.operation.operation)
        if root is None:
            return []
        collected = collect_fields(
            self.schema, self.fragments, self.variable_values, root, self.operation, self.hide_suggestions
        )
        nodes = [(key, details[0].node) for key, details in collected[0].items()]
        return [
            RootField(node.name.value, key, get_argument_values(field, node, self.variable_values), node)
            for key, node in nodes
            if (field := root.fields.get(node.name.value)) is not None
        ]

    def execute_fields(
        self,
        parent_type: graphql.GraphQLObjectType,
        source_value: Any,
        path: Path | None,
        grouped_field_set: GroupedFieldSet,
        position_context: Any,
    ) -> Any:
        self.fields_left -= len(grouped_field_set)
        if self.fields_left < 0:  # then the siblings of the field fail, too
            raise errors.too_complex(self.max_fields)
        if self.is_awaitable is not assume_not_awaitable:
            return super().execute_fields(parent_type, source_value, path, grouped_field_set, position_context)
        values: dict[str, Any] = {}
        execute_field = super().execute_field  # without a look at the selection, which is the same for all items
        for key, details, read, exact, is_nullable in self._readers(parent_type, grouped_field_set):
            if read is not None:
                value = read(source_value)
                # No isinstance(): bool is an int, and a subclass may be serialized otherwise.
                if type(value) is exact or (value is None and is_nullable):
                    values[key] = _whole_as_int(value) if exact is float else value
                    continue
            field_path = Path(path, key, parent_type.name)
            value = execute_field(parent_type, source_value, details, field_path, position_context)
            if value is not graphql.Undefined:
                values[key] = value
        return values

    def _readers(self, parent_type: graphql.GraphQLObjectType, fields: GroupedFieldSet) -> list[FieldReader]:
        """Return the fields with their readers. All items of a list have the same fields."""
        kept = self._kept_readers.get(id(fields))
        if kept is None:
            readers: list[FieldReader] = []
            for key, details in fields.items():
                field = self.schema.get_field(parent_type, details[0].node.name.value)
                is_empty = field is not None and _is_empty_selection(field, details)
                reader = NOTHING if is_empty else field and field.extensions.get(LEAF)
                readers.append((key, details, *(reader or (None, None, False))))
            kept = self._kept_readers[id(fields)] = (fields, readers)  # with the fields, so that no others get their id
        return kept[1]

    def execute_field(
        self,
        parent_type: graphql.GraphQLObjectType,
        source: Any,
        field_details_list: FieldDetailsList,
        path: Path,
        position_context: Any,
    ) -> Any:
        field = self.schema.get_field(parent_type, field_details_list[0].node.name.value)
        if field is not None and _is_empty_selection(field, field_details_list):
            return None
        return super().execute_field(parent_type, source, field_details_list, path, position_context)

    def complete_list_value(  # noqa: PLR0917 - graphql-core's arguments
        self,
        return_type: graphql.GraphQLList[Any],
        field_details_list: FieldDetailsList,
        info: context.Info,
        path: Path,
        result: Any,
        position_context: Any,
    ) -> Any:
        """Return the response values of a list.

        Most lists have objects: their fields are executed without the five steps of graphql-core between a list and
        the fields of its items, which took as long as the fields.
        """
        item_type = graphql.get_nullable_type(return_type.of_type)
        is_async = self.is_awaitable is not assume_not_awaitable
        if is_async or not isinstance(item_type, graphql.GraphQLObjectType) or not isinstance(result, list | tuple):
            return super().complete_list_value(return_type, field_details_list, info, path, result, position_context)
        fields = self.collect_subfields(item_type, field_details_list).grouped_field_set
        completed: list[Any] = []
        for index, item in enumerate(result):
            item_path = path.add_key(index)
            try:
                completed.append(
                    self.execute_fields(item_type, item, item_path, fields, position_context)
                    if item is not None
                    else self.complete_value(return_type.of_type, field_details_list, info, item_path, item, None)
                )
            except Exception as error:
                self.handle_field_error(error, return_type.of_type, field_details_list, item_path)
                completed.append(None)
        return completed

    @staticmethod
    def complete_leaf_value(return_type: graphql.GraphQLLeafType, result: Any) -> Any:
        return _whole_as_int(graphql.Executor.complete_leaf_value(return_type, result))


def build_executor(
    schema: graphql.GraphQLSchema,
    document: graphql.DocumentNode,
    resolver_context: context.ResolverContext,
    variables: dict[str, Any],
    *,
    operation_name: str | None,
    max_fields: int,
    is_async: bool = False,
) -> SupplyExecutor:
    """Return the executor of a valid document; `is_async` if resolvers may have to wait for other services. Raises
    RequestError (400) for invalid variables or an unknown operation name."""
    executor = SupplyExecutor.build(
        schema,
        document,
        context_value=resolver_context,
        raw_variable_values=variables,
        operation_name=operation_name,
        # Without asynchronous resolvers the checks for awaitables, one a field, are left out.
        is_awaitable=None if is_async else assume_not_awaitable,
        is_async_iterable=None if is_async else assume_not_async_iterable,
    )
    if not isinstance(executor, SupplyExecutor):
        build_errors = executor if isinstance(executor, list) else []
        raise errors.invalid_document([errors.variable_error(error) for error in build_errors])
    executor.max_fields = executor.fields_left = max_fields
    return executor


def _whole_as_int(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value


def _is_empty_selection(field: graphql.GraphQLField, details: FieldDetailsList) -> bool:
    """Return true if an object is selected without any sub-fields."""
    return all(detail.node.selection_set is None for detail in details) and graphql.is_composite_type(
        graphql.get_named_type(field.type)
    )


async def source_events(prepared: SupplyExecutor) -> AsyncGenerator[Any, None]:
    """Return the source event stream of a subscription, already subscribed. The caller closes it. Raises RequestError
    if there is none."""
    events = create_source_event_stream(prepared)
    if prepared.is_awaitable(events):
        events = await events
    if isinstance(events, graphql.ExecutionResult):
        failures = [errors.execution_error(error) for error in events.errors or ()]
        raise errors.RequestError(200, failures, null_data=True)
    return cast(AsyncGenerator[Any, None], events)
