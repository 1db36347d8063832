"""Execution of one GraphQL request: authenticate, validate, check limits, execute, count parts.

The order is that of the service as far as it is known: a token error comes before an error of the document, and only
introspection needs no token (contract graphql.md §3). HTTP is handled in transport.py.
"""

import logging
import random
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, cast

from graphql import ExecutionResult, GraphQLError, OperationType

from nexar_sandbox import applications, exchanges, faults, part_usage, settings, user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.design import services
from nexar_sandbox.graphql import context, documents, errors, executor, limits, requests, schema
from nexar_sandbox.identity import tokens

# Scopes that root fields need, by the prefix of their name: supply data (contract graphql.md §4.1); design data (§5),
# which also needs a user's token. Fields about the organization need no scope of their own.
SUPPLY_SCOPES = frozenset({applications.SUPPLY_SCOPE})
DESIGN_SCOPES = frozenset({"design.domain", "user.access"})
RecordRequest = Callable[[str, Mapping[str, Any]], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryResponse:
    """HTTP status and body of a response. `json_status` is sent to clients that name `application/json`; None: the same
    status."""

    status: int
    body: dict[str, Any]
    json_status: int | None = 200


@dataclass(frozen=True, slots=True)
class QueryCaller:
    """The holder of an access token: the application, the user that it acts for, and the scopes."""

    application: applications.SandboxApplication | None = None
    user: str | None = None
    scopes: frozenset[str] = frozenset()

    @property
    def may_read_supply(self) -> bool:
        return self.scopes >= SUPPLY_SCOPES

    @property
    def may_read_design(self) -> bool:
        """True if the token is a user's and its scopes include design data."""
        return self.user is not None and self.scopes >= DESIGN_SCOPES


@dataclass(frozen=True, slots=True)
class PreparedOperation:
    """A valid operation, ready to execute. `token` is checked again for each event of a subscription."""

    prepared: executor.SupplyExecutor
    resolver_context: context.ResolverContext
    document: documents.ParsedDocument
    token: str | None

    @property
    def is_subscription(self) -> bool:
        return self.prepared.operation.operation is OperationType.SUBSCRIPTION

    def for_event(self, event: Any) -> "PreparedOperation":
        """Return the operation for one event of a subscription."""
        prepared = cast(executor.SupplyExecutor, self.prepared.build_per_event_executor(event))
        prepared.max_fields = prepared.fields_left = self.prepared.max_fields
        if self.resolver_context.design is not None:
            # Loaders keep what they have read, and an event says that a record has changed.
            self.resolver_context.design.loaders.clear()
        return replace(self, prepared=prepared)


class QueryService:
    """Executes requests. `record` is called with document and variables of each; `design` returns the client of the
    design services."""

    def __init__(
        self,
        *,
        sandbox_settings: settings.SandboxSettings,
        catalog: store.Catalog,
        application_registry: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        usage: part_usage.PartUsage,
        issued_tokens: tokens.TokenIssuer,
        started: float,
        rng: random.Random,
        record: RecordRequest,
        design: Callable[[], services.DesignClient],
    ) -> None:
        self._settings, self._catalog, self._started, self._design = sandbox_settings, catalog, started, design
        self._applications, self._users, self._part_usage = application_registry, users, usage
        self._tokens, self._rng, self._record = issued_tokens, rng, record

    async def execute(
        self, request: requests.GraphQLRequest, token: str | None, exchange: exchanges.Exchange
    ) -> QueryResponse:
        """Return the response to one request, including errors of document and token."""
        try:
            operation = self._prepare(request, token, exchange)
            if operation.is_subscription:
                message = "Subscriptions are answered over a WebSocket, with the protocol graphql-transport-ws."
                return self.error_response(errors.RequestError(400, [{"message": message}], json_status=None))
            return await self._execute(operation, exchange)
        except errors.RequestError as error:
            return self.error_response(error)

    def error_response(self, error: errors.RequestError) -> QueryResponse:
        content: dict[str, Any] = {"errors": error.errors} | ({"data": None} if error.null_data else {})
        return self._response(error.status, content, error.json_status)

    def _response(self, status: int, content: dict[str, Any], json_status: int | None = 200) -> QueryResponse:
        request_id = uuid.UUID(int=self._rng.getrandbits(128), version=4)
        return QueryResponse(status, {**content, "extensions": {"requestId": str(request_id)}}, json_status)

    async def stream(
        self, request: requests.GraphQLRequest, token: str | None, exchange: exchanges.Exchange
    ) -> AsyncGenerator[QueryResponse, None]:
        """Return the responses to a subscription, one for each event until one has no data; one response to anything
        else."""
        try:
            operation = self._prepare(request, token, exchange)
            if not operation.is_subscription:
                yield await self._execute(operation, exchange)
                return
            async with aclosing(await executor.source_events(operation.prepared)) as events:
                async for event in events:
                    # Once more for each event: a subscription may outlive its token.
                    self._authenticate(operation.token, operation.document, exchange)
                    yield await self._execute(operation.for_event(event), exchange)
        except errors.RequestError as error:
            yield self.error_response(error)

    def _prepare(
        self, request: requests.GraphQLRequest, token: str | None, exchange: exchanges.Exchange
    ) -> PreparedOperation:
        """Authenticate, validate and check limits, before any field is resolved. Raises RequestError."""
        self._record(request.query, request.variables)
        document = documents.read(request.query)
        selected = document.selected(request.operation_name)
        exchange.entry.operation = selected.name.value if selected and selected.name else request.operation_name
        exchange.entry.fields = documents.root_names(selected)
        if request.safe and selected and selected.operation is not OperationType.QUERY:
            message = "The specified operation kind is not allowed."
            raise errors.RequestError(405, [{"message": message}], json_status=None)
        access_token = document.input_token(request.variables) or token
        caller = self._authenticate(access_token, document, exchange)
        exchange.entry.application = caller.application.application_id if caller.application else None
        # After authentication: the service reports a bad token before a bad document (contract graphql.md §3).
        if document.node is None or document.errors:
            raise errors.invalid_document(document.errors)
        resolver_context = context.ResolverContext(
            self._catalog,
            caller.application,
            caller.user,
            self._applications,
            self._users,
            self._part_usage,
            self._started,
            self._settings.bill_refused,
            context.DesignSession(self._design(), caller.user or "", exchange.origin)
            if caller.may_read_design
            else None,
        )
        prepared = executor.build_executor(
            schema.build(),
            document.node,
            resolver_context,
            request.variables,
            operation_name=request.operation_name,
            max_fields=self._settings.answer_fields,
            is_async=document.is_async(),
        )
        self._admit(prepared, caller, exchange)
        return PreparedOperation(prepared, resolver_context, document, access_token)

    def _authenticate(
        self, token: str | None, document: documents.ParsedDocument, exchange: exchanges.Exchange
    ) -> QueryCaller:
        """Return the caller of the token; without an application for introspection without a valid token."""
        if isinstance(exchange.injected.fault, faults.InvalidTokenFault):
            exchange.record_fault(faults.InvalidTokenFault)
            raise _token_error(False, document)
        expired = False
        try:
            claims = self._tokens.access(token or "")
            if not isinstance(exchange.injected.fault, faults.ExpiredTokenFault):
                application = self._applications.by_client_id(claims.client_id)
                return QueryCaller(application, claims.user, frozenset(claims.scopes))
            # Revoked, and not only refused, so that the client needs a new one.
            self._tokens.revoke(claims.jti)
            exchange.record_fault(faults.ExpiredTokenFault)
            expired = True
        except tokens.InvalidTokenError:
            pass
        except tokens.ExpiredTokenError:
            expired = True
        if self._settings.no_auth:
            return self._default_caller()
        if not document.is_introspection():
            raise _token_error(expired, document)
        return QueryCaller()

    def _default_caller(self) -> QueryCaller:
        """Return the caller without a token, if none is needed: the first user, with the first application for
        supply."""
        user = next((user.id for user in self._settings.users), None)
        # Those with supply data first.
        first = max(self._applications.all, key=lambda each: applications.SUPPLY_SCOPE in each.scopes)
        return QueryCaller(first, user, DESIGN_SCOPES.union(first.scopes))

    def _admit(self, prepared: executor.SupplyExecutor, caller: QueryCaller, exchange: exchanges.Exchange) -> None:
        """Check scopes, quota and the limits of arguments, before any field is resolved. Raises RequestError."""
        try:
            roots = prepared.root_fields()
        except GraphQLError as error:
            raise errors.invalid_document([errors.variable_error(error)]) from error
        scope_errors = [scope_error for root in roots if (scope_error := _scope_error(root, caller)) is not None]
        if scope_errors:
            raise errors.RequestError(200, scope_errors, null_data=True, json_status=None)
        application = caller.application
        # Only parts are billed: a request without such a field passes with an exhausted quota.
        is_billed = any(root.name in limits.PART_FIELDS for root in roots)
        if application is not None and is_billed and self._part_usage.is_exhausted(application):
            limit = self._part_usage.limit(application)
            # A lower limit than the application's own is that of a quota fault.
            if limit < application.part_limit:
                exchange.record_fault(faults.QuotaFault)
            raise errors.part_limit(limit)
        violations = [
            errors.stitched(message, [root.key], errors.locations_of(GraphQLError(message, root.node)))
            for root in roots
            for message in limits.violations(root.name, root.arguments)
        ]
        if violations:
            raise errors.RequestError(200, violations, json_status=None)

    async def _execute(self, operation: PreparedOperation, exchange: exchanges.Exchange) -> QueryResponse:
        prepared = operation.prepared
        result: Any = prepared.execute_operation()
        if not isinstance(result, ExecutionResult):  # other services are waited for
            result = await result
        # graphql-core has made a null field of this error; it is one of the whole request.
        is_too_complex = prepared.fields_left < 0
        self._bill(operation.resolver_context, None if is_too_complex else result.data, exchange)
        if is_too_complex:
            raise errors.too_complex(prepared.max_fields)
        for error in result.errors or ():
            # What no service reports is a bug of the sandbox.
            if error.original_error is not None and not isinstance(error.original_error, errors.ServiceError):
                _log.error("the resolver of %s failed: %s", error.path, type(error.original_error).__name__)
        failed = {"errors": [errors.execution_error(error) for error in result.errors]} if result.errors else {}
        return self._response(200, {**failed, "data": result.data})

    def _bill(self, resolver_context: context.ResolverContext, data: Any, exchange: exchanges.Exchange) -> None:
        """Bill the parts in the data, even if other fields failed."""
        if resolver_context.application is not None:
            parts = resolver_context.billed_parts(data)
            self._part_usage.record(resolver_context.application.application_id, parts)
            exchange.journal.record_parts(exchange.entry, parts)


def _scope_error(root: executor.RootField, caller: QueryCaller) -> dict[str, Any] | None:
    """Return the error of a root field for which the token lacks a scope; None if it has them."""
    if root.name.startswith("sup") and not caller.may_read_supply:
        schema_name = errors.SCHEMA_NAME
    elif root.name.startswith(documents.DESIGN_PREFIX) and not caller.may_read_design:
        schema_name = errors.DESIGN_NAME
    else:
        return None
    return errors.out_of_scope([root.key], errors.locations_of(GraphQLError("", root.node)), schema_name)


def _token_error(expired: bool, document: documents.ParsedDocument) -> errors.RequestError:
    field = document.first_field()
    if field is None:
        return errors.unauthorized(expired, None, [])
    key = field.alias.value if field.alias else field.name.value
    return errors.unauthorized(expired, [key], errors.locations_of(GraphQLError("", field)))
