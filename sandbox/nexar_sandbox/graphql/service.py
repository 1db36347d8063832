"""Execution of one GraphQL request: authenticate, validate, check limits, execute, count parts.

The order is that of the service as far as it is known: a token error comes before an error of the document, and only
introspection needs no token (contract graphql.md §3). HTTP is handled in transport.py.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from graphql import DocumentNode, ExecutionResult, GraphQLError, OperationType

from nexar_sandbox import applications, faults, part_usage, settings, user_directory
from nexar_sandbox.behavior import Behavior
from nexar_sandbox.catalog import store
from nexar_sandbox.design import services
from nexar_sandbox.graphql import context, documents, errors, executor, limits, requests, schema
from nexar_sandbox.identity import tokens
from nexar_sandbox.injection import exchanges, injector
from nexar_sandbox.kit import clock as clocks

# Scopes that root fields need, by the prefix of their name: supply data (contract graphql.md §4.1); design data (§5),
# which also needs a user's token. Fields about the organization need no scope of their own.
SUPPLY, SUPPLY_SCOPES = "sup", frozenset({applications.SUPPLY_SCOPE})
ADMIN = "adm"
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

    def for_event(self, event: Any, budget: executor.ExecutionBudget) -> "PreparedOperation":
        """Return the operation for one event of a subscription, with its own budget."""
        prepared = self.prepared.build_per_event_executor(event)
        if not isinstance(prepared, executor.SupplyExecutor):
            raise TypeError("an event is executed by another executor")
        prepared.budget = budget
        if self.resolver_context.design is not None:
            # Loaders keep what they have read, and an event says that a record has changed.
            self.resolver_context.design.loaders.clear()
        return replace(self, prepared=prepared)


class QueryService:
    """Executes requests. `record` is called with document and variables of each; `design` returns the client of the
    design services. `behavior` is that of the settings."""

    def __init__(
        self,
        *,
        sandbox_settings: settings.SandboxSettings,
        schema_variants: schema.SchemaVariants,
        fault_injector: injector.FaultInjector,
        catalog: store.Catalog,
        application_registry: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        usage: part_usage.PartUsage,
        issued_tokens: tokens.TokenIssuer,
        clock: clocks.Clock,
        rng: random.Random,
        record: RecordRequest,
        design: Callable[[], services.DesignClient],
    ) -> None:
        self._settings, self._catalog = sandbox_settings, catalog
        self.behavior, self._errors = sandbox_settings.behavior, errors.ErrorFormat(sandbox_settings.behavior)
        self._applications, self._users = application_registry, users
        self._part_usage, self._tokens, self._rng, self._record = usage, issued_tokens, rng, record
        self._clock, self._started = clock, clock.now()
        self._admission = _Admission(self.behavior, self._errors, usage)
        self._injector, self._schemas, self._design = fault_injector, schema_variants, design

    async def execute(
        self, request: requests.GraphQLRequest, token: str | None, exchange: exchanges.Exchange
    ) -> QueryResponse:
        """Return the response to one request, including errors of document and token."""
        try:
            operation = self.prepare(request, token, exchange)
            if operation.is_subscription:
                message = "Subscriptions are answered over a WebSocket, with the protocol graphql-transport-ws."
                return self.error_response(errors.RequestError(400, [{"message": message}], json_status=None))
            return self._with_request_id(QueryResponse(200, await self._execute(operation, exchange)))
        except errors.RequestError as error:
            return self.error_response(error)

    def error_response(self, error: errors.RequestError) -> QueryResponse:
        content: dict[str, Any] = {"errors": error.errors} | ({"data": None} if error.null_data else {})
        return self._with_request_id(QueryResponse(error.status, content, error.json_status))

    def _with_request_id(self, response: QueryResponse) -> QueryResponse:
        failed = "errors" in response.body
        if self.behavior.error_request_id if failed else self.behavior.request_id:
            request_id = uuid.UUID(int=self._rng.getrandbits(128), version=4)
            response.body["extensions"] = {"requestId": str(request_id)}
        return response

    async def stream(
        self, request: requests.GraphQLRequest, token: str | None, exchange: exchanges.Exchange
    ) -> AsyncGenerator[QueryResponse, None]:
        """Return the responses to a subscription, one for each event until one has no data; one response to anything
        else."""
        try:
            operation = self.prepare(request, token, exchange)
            if not operation.is_subscription:
                yield self._with_request_id(QueryResponse(200, await self._execute(operation, exchange)))
                return
            events = await executor.source_events(operation.prepared)
        except errors.RequestError as error:
            yield self.error_response(error)
            return
        async with aclosing(events):
            async for event in events:
                response = await self._execute_event(operation.for_event(event, self._budget()), exchange)
                yield response
                # An error of the whole request, such as an expired token, ends the subscription.
                if "data" not in response.body:
                    return

    async def _execute_event(self, operation: PreparedOperation, exchange: exchanges.Exchange) -> QueryResponse:
        try:
            # Once more for each event: a subscription may outlive its token.
            self._authenticate(operation.token, operation.document, exchange)
            return self._with_request_id(QueryResponse(200, await self._execute(operation, exchange)))
        except errors.RequestError as error:
            return self.error_response(error)

    def prepare(
        self, request: requests.GraphQLRequest, token: str | None, exchange: exchanges.Exchange
    ) -> PreparedOperation:
        """Authenticate, validate and check limits, before any field is resolved. Raises RequestError."""
        self._record(request.query, request.variables)
        missing = self._injector.missing
        variant = self._schemas.current(missing)
        document = variant.documents.read(request.query)
        exchange.entry.operation, exchange.entry.fields = document.operation(request.operation_name)
        if request.safe and not document.is_query(request.operation_name):
            message = "The specified operation kind is not allowed."
            raise errors.RequestError(405, [{"message": message}], json_status=None)
        access_token = document.input_token(request.variables) or token
        if not self.behavior.token_before_document:
            self._check_document(document, request.query, missing, exchange)
        caller = self._authenticate(access_token, document, exchange)
        exchange.entry.application = caller.application.application_id if caller.application else None
        # After authentication: the service reports a bad token before a bad document (contract graphql.md §3).
        node = self._check_document(document, request.query, missing, exchange)
        resolver_context = self._resolver_context(caller, exchange)
        prepared = executor.build_executor(
            variant.schema,
            node,
            resolver_context,
            request.variables,
            operation_name=request.operation_name,
            budget=self._budget(),
            is_async=document.is_async,
        )
        self._admission.check(prepared, caller, exchange)
        return PreparedOperation(prepared, resolver_context, document, access_token)

    def _check_document(
        self, document: documents.ParsedDocument, text: str, missing: frozenset[str], exchange: exchanges.Exchange
    ) -> DocumentNode:
        """Return the document's syntax tree. Raises RequestError for an invalid document."""
        if document.node is None or document.errors:
            # The fault took effect only if the document is valid with the field.
            if missing and not self._schemas.complete.documents.read(text).errors:
                exchange.record_fault(faults.MissingFieldFault)
            raise self._errors.document(document.errors)
        if document.reads_schema() and not self.behavior.introspection:
            message = "Introspection is not allowed for the current request."
            raise errors.RequestError(400, [{"message": message, "extensions": {"code": "HC0046"}}])
        return document.node

    def _budget(self) -> executor.ExecutionBudget:
        return executor.ExecutionBudget(self._clock, self._settings.execution_timeout, self._settings.answer_fields)

    def _resolver_context(self, caller: QueryCaller, exchange: exchanges.Exchange) -> context.ResolverContext:
        session = (
            context.DesignSession(self._design(), caller.user or "", exchange.origin)
            if caller.may_read_design
            else None
        )
        return context.ResolverContext(
            self._catalog,
            caller.application,
            caller.user,
            self._applications,
            self._users,
            self._part_usage,
            self._settings.site_url,
            self._started,
            self._clock.now(),
            self.behavior,
            session,
        )

    def _authenticate(
        self, token: str | None, document: documents.ParsedDocument, exchange: exchanges.Exchange
    ) -> QueryCaller:
        """Return the caller of the token; without an application for introspection without a valid token."""
        if exchange.fault is not None:
            self._apply_token_fault(token or "", document, exchange)
        expired = False
        try:
            claims = self._tokens.access(token or "")
            caller = QueryCaller(
                self._applications.by_client_id(claims.client_id), claims.user, frozenset(claims.scopes)
            )
        except tokens.InvalidTokenError:
            caller = QueryCaller()
        except tokens.ExpiredTokenError as error:
            caller, expired = QueryCaller(), True
            if isinstance(error, tokens.RevokedByFaultError):
                exchange.record_fault(faults.ExpiredTokenFault)
        if caller.application is None and self._settings.no_auth:
            return _default_caller(self._settings, self._applications)
        if caller.application is None and (self.behavior.introspection_needs_token or not document.is_introspection()):
            raise _token_error(self._errors, token, expired, document)
        return caller

    def _apply_token_fault(self, token: str, document: documents.ParsedDocument, exchange: exchanges.Exchange) -> None:
        if isinstance(exchange.fault, faults.ExpiredTokenFault):
            # Revoked, and not only refused, so that the client needs a new one.
            self._tokens.end(token)
        if isinstance(exchange.fault, faults.InvalidTokenFault):
            exchange.record_fault(faults.InvalidTokenFault)
            raise _token_error(self._errors, token, False, document)

    async def _execute(self, operation: PreparedOperation, exchange: exchanges.Exchange) -> dict[str, Any]:
        prepared, resolver_context = operation.prepared, operation.resolver_context
        result: Any = prepared.execute_operation()
        if not isinstance(result, ExecutionResult):
            # Other services are waited for.
            try:
                async with asyncio.timeout(self._settings.execution_timeout):
                    result = await result
            except TimeoutError:
                self._bill(resolver_context, None, exchange)
                raise errors.timed_out(self._settings.execution_timeout) from None
        # graphql-core has made a null field of the error; it is one of the whole request.
        if prepared.budget.exceeded is not None:
            self._bill(resolver_context, None, exchange)
            raise prepared.budget.exceeded
        # Parts in the data are billed even if other fields failed.
        self._bill(resolver_context, result.data, exchange)
        if not result.errors:
            return {"data": result.data}
        for error in result.errors:
            # What no service reports is a bug of the sandbox.
            if error.original_error is not None and not isinstance(error.original_error, errors.ServiceError):
                _log.error("the resolver of %s failed: %s", error.path, type(error.original_error).__name__)
        return {"errors": [self._errors.execution(error) for error in result.errors], "data": result.data}

    def _bill(self, resolver_context: context.ResolverContext, data: Any, exchange: exchanges.Exchange) -> None:
        if resolver_context.application is not None:
            parts = resolver_context.billed_parts(data)
            self._part_usage.record(resolver_context.application.application_id, parts)
            exchange.record_parts(parts)


@dataclass(frozen=True, slots=True)
class _Admission:
    """Checks of scopes, quota and the limits of arguments, before any field is resolved."""

    _behavior: Behavior
    _errors: errors.ErrorFormat
    _part_usage: part_usage.PartUsage

    def check(self, prepared: executor.SupplyExecutor, caller: QueryCaller, exchange: exchanges.Exchange) -> None:
        application, behavior = caller.application, self._behavior
        try:
            roots = prepared.root_fields()
        except GraphQLError as error:
            raise self._errors.document([self._errors.variable(error)]) from error
        scope_errors = [scope_error for root in roots if (scope_error := self._scope_error(root, caller)) is not None]
        if scope_errors:
            raise errors.RequestError(behavior.scope_error_status, scope_errors, null_data=True, json_status=None)
        # Only parts are billed: a request without such a field passes with an exhausted quota.
        is_billed = any(limits.is_billed(root.name, root.arguments, behavior) for root in roots)
        if application is not None and is_billed and self._part_usage.is_exhausted(application):
            limit = self._part_usage.limit(application)
            # A lower limit than the application's own is that of a quota fault.
            if limit < application.part_limit:
                exchange.record_fault(faults.QuotaFault)
            raise errors.RequestError(
                behavior.part_limit_status,
                [self._errors.part_limit(limit)],
                null_data=behavior.part_limit_data,
                json_status=None,
            )
        violations = [
            self._errors.limit(message, [root.key], errors.locations_of(GraphQLError(message, root.node)))
            for root in roots
            for message in limits.violations(root.name, root.arguments, behavior)
        ]
        if violations:
            raise errors.RequestError(
                behavior.range_error_status, violations, null_data=behavior.range_error_data, json_status=None
            )

    def _scope_error(self, root: executor.RootField, caller: QueryCaller) -> dict[str, Any] | None:
        """Return the error of a root field for which the token lacks a scope; None if it has them."""
        if root.name.startswith(SUPPLY) and not caller.may_read_supply:
            schema_name = errors.SCHEMA_NAME
        elif root.name.startswith(documents.DESIGN_PREFIX) and not caller.may_read_design:
            schema_name = errors.DESIGN_NAME
        elif root.name.startswith(ADMIN) and caller.user is None and not self._behavior.admin_by_applications:
            schema_name = errors.ADMIN_NAME
        else:
            return None
        return self._errors.out_of_scope([root.key], errors.locations_of(GraphQLError("", root.node)), schema_name)


def _default_caller(
    sandbox_settings: settings.SandboxSettings, application_registry: applications.ApplicationRegistry
) -> QueryCaller:
    """Return the caller without a token, if none is needed: the first user, with the first application for supply."""
    user = next((user.id for user in sandbox_settings.users), None)
    for application in application_registry.all:
        if applications.SUPPLY_SCOPE in application.scopes:
            return QueryCaller(application, user, SUPPLY_SCOPES | DESIGN_SCOPES)
    return QueryCaller(next(iter(application_registry.all), None), user, DESIGN_SCOPES)


def _token_error(
    formats: errors.ErrorFormat, token: str | None, expired: bool, document: documents.ParsedDocument
) -> errors.RequestError:
    field = document.first_field()
    if field is None:
        return formats.unauthorized(token, expired, None, [])
    key = field.alias.value if field.alias else field.name.value
    return formats.unauthorized(token, expired, [key], errors.locations_of(GraphQLError("", field)))
