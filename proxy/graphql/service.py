"""Execution of a GraphQL request: prepare it, resolve its root fields, put the response together."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphql
import msgspec

from proxy import errors, model
from proxy.gateway import core
from proxy.gateway.core import Answer, Client, Gateway
from proxy.graphql import roots, selection
from proxy.graphql.documents import ClientDocument, DocumentRequest, InvalidDocumentError
from proxy.graphql.preparation import Introspection, Preparation, Requested
from proxy.planning.queries import Query

NULL = b"null"
PART_LIMIT = "You have exceeded your part limit"
# Codes of the upstream where it has one (contract graphql.md §3.2).
CODES: Mapping[type[errors.BridgeError], str] = {
    errors.MissingKey: "AuthInvalidToken",
    errors.ForbiddenKey: "AuthInvalidToken",
    errors.ExpiredKey: "AuthExpiredToken",
}


class Value(NamedTuple):
    """Value of a root field as JSON, the errors beside it, the answers that it is made of, or why it has none."""

    json: bytes = NULL
    reported: Sequence[dict[str, Any]] = ()
    answers: Sequence[Answer] = ()
    failure: errors.BridgeError | None = None


class GraphQLResponse(NamedTuple):
    """Body of a response, the answers that it is made of, and the error of a root field that has no value."""

    body: bytes
    answers: Sequence[Answer]
    failure: errors.BridgeError | None = None

    @property
    def status(self) -> int:
        """The HTTP status: as the upstream, 200 where the document or its parts are refused."""
        is_refused = isinstance(self.failure, errors.QueryRefused | errors.QuotaExhausted)
        return 200 if self.failure is None or is_refused else self.failure.status


class GraphQLService:
    """Executes the documents of clients by a gateway."""

    def __init__(self, gateway: Gateway, schema: graphql.GraphQLSchema) -> None:
        self._preparation = Preparation(schema, gateway.projections)
        self._gateway = gateway

    async def execute(self, request: DocumentRequest, client: Client, deadline: float) -> GraphQLResponse:
        """Return the response, which the client waits for until `deadline` (monotonic seconds). Raises
        InvalidDocumentError before anything is sent."""
        try:
            prepared = self._preparation.prepare(request)
        except InvalidDocumentError as error:
            for each in error.errors:
                each.message = request.document.message(each.message)
            raise
        resolving = (self._value(client, each, deadline) for each in prepared)
        values = await asyncio.gather(*resolving)
        return _response(request.document, [*zip(prepared, values, strict=True)])

    async def _value(self, client: Client, field: Introspection | Requested, deadline: float) -> Value:
        """Return the value of a root field, or why it has none."""
        if isinstance(field, Introspection):
            return Value(msgspec.json.encode(field.value))
        try:
            return await self._supplied(client, field, deadline)
        except errors.BridgeError as error:
            return Value(NULL, [error_of(error, [field.key])], failure=error)

    async def _supplied(self, client: Client, requested: Requested, deadline: float) -> Value:
        """Return the value of a root field. Raises BridgeErrors."""
        arguments, features = requested.arguments, requested.features
        asked = roots.of_root(requested.field.name, arguments) if requested.parts_max else None
        # Where parts and results do not have all that is selected, the response to the field itself says why.
        if (
            asked
            and features is not None
            and features <= self._gateway.features.tier(client.application).selected.features
        ):
            at_market = client.in_market(arguments["country"], arguments["currency"])
            answers = await self._gateway.pipeline.resolve(at_market, asked, deadline)
            if all(_has_all(answer, features) for answer in answers):
                return _found(requested, asked, answers)
        answer = await self._passed_on(client, requested, deadline)
        answers = [answer] if requested.parts_max else []
        if isinstance(answer.error, errors.QueryRefused):
            return Value(NULL, [_placed(requested.key, each) for each in answer.error.reported], answers)
        if answer.error is not None:
            raise answer.error.shared()
        value = (answer.result and answer.result.details) or NULL
        if requested.other_names:
            value = _shown(msgspec.json.decode(value), requested, as_sent=True)
        return Value(value, [_placed(requested.key, each) for each in answer.reported], answers)

    async def _passed_on(self, client: Client, requested: Requested, deadline: float) -> Answer:
        """Return the answer to a root field as it stands. Raises BridgeErrors."""
        query, passed_on = requested.query()
        if requested.depth > 1 and any(account.limit is not None for account in client.charged):
            raise errors.BadRequest(f"{requested.field.name}: parts within parts are not served under a limit of parts")
        if requested.parts_max or passed_on.is_private:
            (answer,) = await self._gateway.pipeline.resolve(client, [query], deadline)
            return answer
        try:
            data = await self._gateway.free.execute(client.application, passed_on.operation, deadline)
        except errors.QueryRefused as error:
            return Answer(None, error)
        return core.passed_on(query, passed_on.read(data), 0)


def _response(document: ClientDocument, found: Sequence[tuple[Introspection | Requested, Value]]) -> GraphQLResponse:
    """Put the values of root fields together. A field without a value is null, and so is all data where it must not
    be null (GraphQL October 2021 §6.4.4)."""
    body: dict[str, Any] = {"errors": [], "data": {field.key: msgspec.Raw(value.json) for field, value in found}}
    for field, value in found:
        body["errors"] += [each | {"message": document.message(each["message"])} for each in value.reported]
        if value.json == NULL and isinstance(field, Requested) and not field.is_nullable:
            body["data"] = None
            break  # errors of further fields would be about data that is null already
    if not body["errors"]:
        del body["errors"]
    answers = [answer for _, value in found for answer in value.answers]
    failure = next((value.failure for _, value in found if value.failure), None)
    return GraphQLResponse(msgspec.json.encode(body), answers, failure)


def _has_all(answer: Answer, features: frozenset[str]) -> bool:
    """Return whether nothing is missing of an answer that the upstream would have for the field itself."""
    if isinstance(answer.error, errors.QueryRefused):
        return not answer.error.reported  # the error of one query
    if answer.error is not None:
        return not isinstance(answer.error, errors.OversizedOperation)
    return features <= answer.features and not answer.is_partial


def _found(requested: Requested, asked: Sequence[Query], answers: Sequence[Answer]) -> Value:
    """Return the value of a field that is made of parts and results. Raises the error of a query that others beside it
    cannot stand without."""
    key, name, reported = requested.key, requested.field.name, []
    is_any = any(answer.result for answer in answers)
    for place, answer in enumerate(answers):
        is_refused = isinstance(answer.error, errors.QueryRefused)
        if answer.error is None or (is_refused and name == roots.MULTI_MATCH):
            continue
        if not is_any or not (is_refused or isinstance(answer.error, errors.QuotaExhausted)):
            raise answer.error.shared()
        reported.append(error_of(answer.error, [key, place]))
    value = roots.value(name, requested.arguments, asked, answers)
    return Value(_shown(value, requested), reported, answers)


def _shown(value: Any, requested: Requested, *, as_sent: bool = False) -> bytes:
    try:
        return msgspec.json.encode(selection.select(value, requested.field.below, as_sent=as_sent))
    except (KeyError, TypeError) as error:
        message = f"the upstream sent {requested.field.name} in another form: {error}"
        raise errors.UpstreamUnreadable(message) from error


def error_of(error: errors.BridgeError, path: list[str | int] | None = None) -> dict[str, Any]:
    """Return an error of this service as one of the response. That of exhausted parts begins as the upstream's does:
    clients recognize it by that (contract graphql.md §3.2)."""
    message, code = error.message, CODES.get(type(error), type(error).__name__)
    if isinstance(error, errors.QuotaExhausted) and not message.startswith(PART_LIMIT):
        message = f"{PART_LIMIT}: {message}"
    return {"message": message, **({} if path is None else {"path": path}), "extensions": {"code": code}}


def _placed(key: str, error: model.GraphQLError) -> dict[str, Any]:
    """Return an error of the upstream with the path that the client knows."""
    path = {"path": [key, *error.path[1:]]} if isinstance(error.path, list) and error.path else {}
    return {"message": error.message} | path | ({"extensions": error.extensions} if error.extensions else {})
