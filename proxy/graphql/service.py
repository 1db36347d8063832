"""Execution of a GraphQL request: prepare its root fields before anything is sent or paid for, resolve them, put the
response together."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec
from graphql.execution.values import VariableValues, get_argument_values
from graphql.language import ast

from proxy import errors, model
from proxy.gateway import Answer, Client, Gateway, ResponseMetadata
from proxy.graphql import documents, fields
from proxy.graphql.documents import DocumentRequest, InvalidDocumentError
from proxy.graphql.fields import Requested
from proxy.planning.queries import Query

DOCUMENT_PARTS_MAX = 1_000  # that a document may cost
NULL = b"null"
PART_LIMIT = "You have exceeded your part limit"
# Codes of the upstream where it has one (contract graphql.md §3.2).
CODES: Mapping[type[errors.BridgeError], str] = {
    errors.MissingKey: "AuthInvalidToken",
    errors.ForbiddenKey: "AuthInvalidToken",
    errors.ExpiredKey: "AuthExpiredToken",
}

Nodes = Sequence[ast.FieldNode]


class Value(NamedTuple):
    """Value of a root field as JSON, the errors beside it, or why it has none."""

    json: bytes = NULL
    reported: Sequence[dict[str, Any]] = ()
    failure: errors.BridgeError | None = None


class GraphQLResponse(NamedTuple):
    """HTTP status and body of a response, and the error of a root field that has no value."""

    status: int
    body: bytes
    failure: errors.BridgeError | None


class GraphQLService:
    """Executes the documents of clients by a gateway."""

    def __init__(self, gateway: Gateway, schema: graphql.GraphQLSchema) -> None:
        assert schema.query_type is not None  # noqa: S101 - it has one
        self._gateway, self._schema, self._query = gateway, schema, schema.query_type
        self._known = gateway.projections.whole(gateway.projections.features).fields | fields.KNOWN
        self._added = gateway.projections.gated()

    async def execute(self, request: DocumentRequest, client: Client, metadata: ResponseMetadata) -> GraphQLResponse:
        """Return the response. Raises InvalidDocumentError before anything is sent."""
        try:
            prepared = self._prepare(request)
        except InvalidDocumentError as error:
            for each in error.errors:
                each.message = request.document.message(each.message)
            raise
        values = await asyncio.gather(*(self._value(client, each, metadata) for each in prepared.values()))
        # A field without a value is null, and so is all data where it must not be null (GraphQL October 2021 §6.4.4).
        data = {key: msgspec.Raw(value.json) for key, value in zip(prepared, values, strict=True)}
        body: dict[str, Any] = {"errors": [], "data": data}
        for field, value in zip(prepared.values(), values, strict=True):
            body["errors"] += [
                {**each, "message": request.document.message(each["message"])} for each in value.reported
            ]
            if value.json == NULL and isinstance(field, Requested) and not field.is_nullable:
                body["data"] = None
                break  # errors of further fields would be about data that is null already
        if not body["errors"]:
            del body["errors"]
        failure = next((value.failure for value in values if value.failure), None)
        # As the upstream: 200 also where the document or its parts are refused.
        is_refused = isinstance(failure, errors.QueryRefused | errors.QuotaExhausted)
        status = 200 if failure is None or is_refused else failure.status
        return GraphQLResponse(status, msgspec.json.encode(body), failure)

    def _prepare(self, request: DocumentRequest) -> dict[str, Requested | Value]:
        """Return the root fields of a request by their keys, in the order of the response; of introspection their
        values. Raises InvalidDocumentError."""
        coerced = documents.coerced(self._schema, request.operation, request.variables)
        try:
            merged = fields.Compiler(self._schema, request.document, coerced).merged(request.operation.selection_set)
            prepared = {key: self._root(request, coerced, key, nodes) for key, nodes in merged.items()}
        except graphql.GraphQLError as error:
            raise InvalidDocumentError(error) from error
        parts = sum(each.parts_max for each in prepared.values() if isinstance(each, Requested))
        if parts > DOCUMENT_PARTS_MAX:
            cost = f"The document may cost {parts:,} parts; at most {DOCUMENT_PARTS_MAX:,} are allowed"
            raise InvalidDocumentError(graphql.GraphQLError(f"{cost}: ask for fewer, or in several requests."))
        return prepared

    def _root(self, request: DocumentRequest, coerced: VariableValues, key: str, nodes: Nodes) -> Requested | Value:
        """Return a root field of a request; of introspection its value."""
        document, operation, name = request.document, request.operation, nodes[0].name.value
        declared = operation.variable_definitions or ()
        if name in documents.INTROSPECTION:
            schema = document.introspected or self._schema  # that the client knows
            alone = ast.OperationDefinitionNode(
                operation=operation.operation,
                variable_definitions=tuple(each for each in declared if graphql.type_from_ast(schema, each.type)),
                directives=(),
                selection_set=ast.SelectionSetNode(selections=tuple(nodes)),
            )
            executed = ast.DocumentNode(definitions=(alone, *document.fragments.values()))
            result = graphql.execute_sync(schema, executed, variable_values=dict(request.variables))
            return Value(msgspec.json.encode((result.data or {}).get(key)))
        compiler = fields.Compiler(self._schema, document, coerced)
        field, definition = compiler.field(self._query, key, nodes), self._query.fields[name]
        read = {*fields.paths((field,))}
        needed = frozenset(each for each, paths in self._added.items() if not paths.isdisjoint(read))
        used = {each.variable.name.value: each for each in declared if each.variable.name.value in compiler.used}
        arguments = get_argument_values(definition, nodes[0], coerced)
        return Requested(
            key,
            field,
            arguments,
            any(arguments.get(name) for name in fields.PRIVATE),
            not isinstance(definition.type, graphql.GraphQLNonNull),
            needed if read <= self._known else None,
            f"({', '.join(map(graphql.print_ast, used.values()))})" if used else "",
            {name: request.variables[name] for name in used if name in request.variables},
            bool(document.client_names),
        )

    async def _value(self, client: Client, requested: Requested | Value, metadata: ResponseMetadata) -> Value:
        """Return the value of a root field: of parts and results where these have all that is selected, else that of a
        response to the field itself, which says why it does not."""
        if isinstance(requested, Value):
            return requested
        key, features, deadline = requested.key, requested.features, metadata.deadline
        tier = self._gateway.features.tier(client.application).selected.features
        try:
            if features is not None and features <= tier and (asked := requested.queries()):
                at_market = client.in_market(requested.arguments["country"], requested.arguments["currency"])
                answers = await self._gateway.pipeline.resolve(at_market, asked, deadline)
                metadata.add(answers, self._gateway.clock)
                if (found := _found(requested, features, asked, answers)) is not None:
                    return found
            answer = await self._passed_on(client, requested, deadline)
            if requested.parts_max:
                metadata.add([answer], self._gateway.clock)
            if answer.error is not None and not isinstance(answer.error, errors.QueryRefused):
                raise answer.error.shared()
            value = (answer.result and answer.error is None and answer.result.details) or NULL
            if requested.other_names:
                value = _shown(msgspec.json.decode(value), requested, as_sent=True)
            return Value(value, _errors(key, answer.reported if answer.error is None else answer.error.reported))
        except errors.BridgeError as error:
            return Value(NULL, [error_of(error, [key])], error)

    async def _passed_on(self, client: Client, requested: Requested, deadline: float) -> Answer:
        """Return the answer to a root field as it stands. Raises BridgeErrors."""
        query, passed_on = requested.as_it_stands()
        if requested.field.depth > 1 and any(account.limit is not None for account in client.charged):
            raise errors.BadRequest(f"{requested.field.name}: parts within parts are not served under a limit of parts")
        if requested.parts_max or passed_on.is_private:
            (answer,) = await self._gateway.pipeline.resolve(client, [query], deadline)
            return answer
        try:
            data = await self._gateway.free.execute(client.application, passed_on.operation, deadline)
        except errors.QueryRefused as error:
            return Answer(None, error)
        return Answer.passed_on(query, passed_on.read(data))


def _found(
    requested: Requested, features: frozenset[str], asked: Sequence[Query], answers: Sequence[Answer]
) -> Value | None:
    """Return the value of a field that is made of parts and results; None where an answer lacks something that the
    upstream would have for the field itself. Raises the error of a query that others beside it cannot stand without."""
    for answer in answers:
        if isinstance(answer.error, errors.QueryRefused):
            if answer.error.was_executed:  # it may have been billed, and is not asked once more as it stands
                return Value(NULL, _errors(requested.key, answer.error.reported))
            has_all = not answer.error.reported  # the error of one query
        elif answer.error is not None:
            has_all = not isinstance(answer.error, errors.OversizedOperation)
        else:
            has_all = features <= answer.features and not answer.is_partial
        if not has_all:
            return None
    key, name, reported = requested.key, requested.field.name, []
    is_any = any(answer.result for answer in answers)
    for place, answer in enumerate(answers):
        is_refused = isinstance(answer.error, errors.QueryRefused)
        if answer.error is None or (is_refused and name == fields.MULTI_MATCH):
            continue
        if not is_any or not (is_refused or isinstance(answer.error, errors.QuotaExhausted)):
            raise answer.error.shared()
        reported.append(error_of(answer.error, [key, place]))
    return Value(_shown(requested.value(asked, answers), requested), reported)


def _shown(value: Any, requested: Requested, *, as_sent: bool = False) -> bytes:
    try:
        return msgspec.json.encode(fields.select(value, requested.field.below, as_sent=as_sent))
    except (KeyError, TypeError) as error:
        message = f"the upstream sent {requested.field.name} in another form: {error}"
        raise errors.UpstreamUnreadable(message) from error


def _errors(key: str, reported: Sequence[model.GraphQLError]) -> list[dict[str, Any]]:
    """Return errors of the upstream with the path that the client knows."""
    shown: list[dict[str, Any]] = []
    for each in reported:
        path = {"path": [key, *each.path[1:]]} if isinstance(each.path, list) and each.path else {}
        extensions = {"extensions": each.extensions} if each.extensions else {}
        shown.append({"message": each.message} | path | extensions)
    return shown


def error_of(error: errors.BridgeError, path: list[str | int] | None = None) -> dict[str, Any]:
    """Return an error of this service as one of the response. That of exhausted parts begins as the upstream's does:
    clients recognize it by that (contract graphql.md §3.2)."""
    message, code = error.message, CODES.get(type(error), type(error).__name__)
    if isinstance(error, errors.QuotaExhausted) and not message.startswith(PART_LIMIT):
        message = f"{PART_LIMIT}: {message}"
    return {"message": message, **({} if path is None else {"path": path}), "extensions": {"code": code}}
