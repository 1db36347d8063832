"""One GraphQL request from its parameters to an answer: authenticate, validate, check the caps, execute, bill.

The order is the service's as far as it is known: a token fault comes before a fault of the document, only
questions about the schema need no token (contract graphql.md §3). HTTP is transport.py's.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from graphql import ExecutionResult, GraphQLError, OperationType

from proxy.kit import clock as clocks
from proxy.sandbox import applications, faults, part_usage, settings, user_directory
from proxy.sandbox.catalog import store
from proxy.sandbox.design import client
from proxy.sandbox.graphql import (
    allowance,
    context,
    design_session,
    documents,
    executor,
    limits,
    problems,
    requests,
    subscriptions,
    surfaces,
)
from proxy.sandbox.identity import tokens
from proxy.sandbox.injection import exchanges, injector

# What a token must be good for, by what the name of an operation begins with: supply data (contract graphql.md §4.1);
# design data, for which it must be a user's, too (§5). Operations on the organisation need no scope of their own.
SUPPLY, SUPPLY_SCOPES = "sup", frozenset({applications.SUPPLY_SCOPE})
DESIGN_SCOPES = frozenset({"design.domain", "user.access"})
Seen = Callable[[str, Mapping[str, Any]], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and the body to encode. `fixed`: the status is the same in every media type."""

    status: int
    body: dict[str, Any]
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the application, the user that it acts for, and what the token is good for."""

    account: applications.SandboxApplication | None = None
    user: str | None = None
    scopes: frozenset[str] = frozenset()

    @property
    def may_supply(self) -> bool:
        """Whether supply data is there for it."""
        return self.scopes >= SUPPLY_SCOPES

    @property
    def may_design(self) -> bool:
        """Whether design data is there for it."""
        return self.user is not None and self.scopes >= DESIGN_SCOPES


@dataclass(frozen=True, slots=True)
class Planned:
    """An operation that may be executed. `token`: what was shown for it."""

    prepared: executor.SupplyExecutor
    bill: context.Context
    document: documents.Document
    token: str | None

    @property
    def is_subscription(self) -> bool:
        """Whether it is answered more than once."""
        return self.prepared.operation.operation is OperationType.SUBSCRIPTION

    def about(self, event: Any, allowed: allowance.Allowance) -> "Planned":
        """The same for one event, with what that may use up."""
        prepared = self.prepared.build_per_event_executor(event)
        if not isinstance(prepared, executor.SupplyExecutor):
            raise TypeError("an event is executed by another executor")
        prepared.allowance = allowed
        if self.bill.design is not None:
            self.bill.design.lookups.forget()
        return replace(self, prepared=prepared)


class QueryService:
    """Answers requests. `seen` is called with the document and variables of each that could be read; `design` gives
    what asks the design services."""

    def __init__(
        self,
        *,
        chosen: settings.SandboxSettings,
        surfaces_of: surfaces.Surfaces,
        drawing: injector.FaultInjector,
        catalog: store.Catalog,
        known: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        counted: part_usage.PartUsage,
        issued: tokens.Tokens,
        clock: clocks.Clock,
        rng: random.Random,
        seen: Seen,
        design: Callable[[], client.DesignClient],
    ) -> None:
        self._settings, self._catalog = chosen, catalog
        self._accounts, self._people = known, users
        self._accounting, self._tokens, self._rng, self._seen = counted, issued, rng, seen
        self._clock, self._started = clock, clock.now()
        self._injector, self._surfaces, self._design = drawing, surfaces_of, design

    async def answer(self, request: requests.Request, token: str | None, exchange: exchanges.Exchange) -> Answer:
        """The answer to one request, whatever its document and its token."""
        try:
            planned = self.plan(request, token, exchange)
            if planned.is_subscription:
                raise problems.no_socket()
            return self._signed(Answer(200, await self._execute(planned, exchange)))
        except problems.RequestError as refused:
            return self.refusal(refused)

    def refusal(self, refused: problems.RequestError) -> Answer:
        """The answer that says so."""
        content: dict[str, Any] = {"errors": refused.errors} | ({"data": None} if refused.null_data else {})
        return self._signed(Answer(refused.status, content, refused.fixed))

    def _signed(self, answer: Answer) -> Answer:
        request_id = uuid.UUID(int=self._rng.getrandbits(128), version=4)
        answer.body["extensions"] = {"requestId": str(request_id)}
        return answer

    async def stream(
        self, request: requests.Request, token: str | None, exchange: exchanges.Exchange
    ) -> AsyncGenerator[Answer, None]:
        """The answers to a subscription, one for each event, the first after its token a refusal and the last; the one
        answer to anything else."""
        try:
            planned = self.plan(request, token, exchange)
            if not planned.is_subscription:
                yield self._signed(Answer(200, await self._execute(planned, exchange)))
                return
            events = await subscriptions.events(planned.prepared)
        except problems.RequestError as refused:
            yield self.refusal(refused)
            return
        async with aclosing(events):
            async for event in events:
                told = await self._told(planned.about(event, self._allowed()), exchange)
                yield told
                if "data" not in told.body:
                    return

    async def _told(self, planned: "Planned", exchange: exchanges.Exchange) -> Answer:
        try:
            self._authenticate(planned.token, planned.document, exchange)
            return self._signed(Answer(200, await self._execute(planned, exchange)))
        except problems.RequestError as refused:
            return self.refusal(refused)

    def plan(self, request: requests.Request, token: str | None, exchange: exchanges.Exchange) -> "Planned":
        """All that is done before a field is resolved. Raises RequestError."""
        self._seen(request.query, request.variables)
        missing, whole = self._injector.missing, self._surfaces.whole
        surface = self._surfaces.current(missing)
        document = surface.documents.read(request.query)
        exchange.entry.operation, exchange.entry.fields = document.asked(request.operation_name)
        if request.safe and not document.is_query(request.operation_name):
            raise problems.not_safe()
        shown = document.shown_token(request.variables) or token
        caller = self._authenticate(shown, document, exchange)
        account = caller.account
        exchange.entry.application = account.application_id if account else None
        if document.node is None or document.faults:
            if missing and not whole.documents.read(request.query).faults:
                exchange.record_fault(faults.MissingFieldFault)
            raise problems.RequestError(400, document.faults)
        bill = self._bill(caller, exchange)
        prepared = executor.prepare(
            surface.schema,
            document.node,
            bill,
            request.variables,
            operation_name=request.operation_name,
            allowed=self._allowed(),
            waits=document.waits,
        )
        self._check(prepared, caller, exchange)
        return Planned(prepared, bill, document, shown)

    def _allowed(self) -> allowance.Allowance:
        return allowance.Allowance(self._clock, self._settings.execution_timeout, self._settings.answer_fields)

    def _bill(self, caller: "Caller", exchange: exchanges.Exchange) -> context.Context:
        session = (
            design_session.Session(self._design(), caller.user or "", exchange.origin) if caller.may_design else None
        )
        return context.Context(
            self._catalog,
            caller.account,
            caller.user,
            self._accounts,
            self._people,
            self._accounting,
            self._settings.site_url,
            self._started,
            self._clock.now(),
            session,
        )

    def _authenticate(self, token: str | None, document: documents.Document, exchange: exchanges.Exchange) -> "Caller":
        """Who asks; without an account somebody unknown who asks for nothing but the schema."""
        if exchange.fault is not None:
            self._strike_token(token or "", document, exchange)
        expired = False
        try:
            said = self._tokens.access(token or "")
            caller = Caller(self._accounts.by_client_id(said.client_id), said.user, frozenset(said.scopes))
        except tokens.InvalidTokenError:
            caller = Caller()
        except tokens.ExpiredTokenError as error:
            caller, expired = Caller(), True
            if isinstance(error, tokens.EndedTokenError):
                exchange.record_fault(faults.ExpiredTokenFault)
        if caller.account is None and self._settings.no_auth:
            return self._nobody()
        if caller.account is None and not document.is_introspection():
            raise problems.RequestError(401, [_token_fault(expired, document)], fixed=True)
        return caller

    def _nobody(self) -> "Caller":
        """Who asks without a token where none is needed: the first user, on the first application with supply data."""
        user = next((one.id for one in self._settings.users), None)
        for account in self._accounts.all:
            if applications.SUPPLY_SCOPE in account.scopes:
                return Caller(account, user, SUPPLY_SCOPES | DESIGN_SCOPES)
        return Caller(next(iter(self._accounts.all), None), user, DESIGN_SCOPES)

    def _strike_token(self, token: str, document: documents.Document, exchange: exchanges.Exchange) -> None:
        if isinstance(exchange.fault, faults.ExpiredTokenFault):
            self._tokens.end(token)
        if isinstance(exchange.fault, faults.InvalidTokenFault):
            exchange.record_fault(faults.InvalidTokenFault)
            raise problems.RequestError(401, [_token_fault(False, document)], fixed=True)

    def _check(self, prepared: executor.SupplyExecutor, caller: Caller, exchange: exchanges.Exchange) -> None:
        """Everything that is refused before a field is resolved."""
        account = caller.account
        try:
            roots = prepared.root_fields()
        except GraphQLError as error:
            raise problems.RequestError(400, [problems.variable(error)]) from error
        refused = [fault for one in roots if (fault := _out_of_scope(one, caller)) is not None]
        if refused:
            raise problems.RequestError(200, refused, null_data=True)
        if account is not None and self._is_used_up(roots, account):
            limit = self._accounting.limit(account)
            if limit < account.part_limit:
                exchange.record_fault(faults.QuotaFault)
            used_up = problems.part_limit(limit)
            raise problems.RequestError(self._settings.part_limit_status, [used_up], null_data=True, fixed=True)
        over = [_cap(one, message) for one in roots for message in limits.violations(one.name, one.arguments)]
        if over:
            raise problems.RequestError(200, over)

    def _is_used_up(self, roots: Sequence[executor.RootField], account: applications.SandboxApplication) -> bool:
        return any(one.name in limits.PART_FIELDS for one in roots) and self._accounting.is_exhausted(account)

    async def _execute(self, planned: "Planned", exchange: exchanges.Exchange) -> dict[str, Any]:
        prepared, bill = planned.prepared, planned.bill
        result = prepared.execute_operation()
        if not isinstance(result, ExecutionResult):
            result = await _in_time(result, self._settings.execution_timeout)
        if prepared.allowance.refused is not None:
            raise prepared.allowance.refused
        if bill.account is not None:
            parts = bill.parts(result.data)
            self._accounting.record(bill.account.application_id, parts)
            exchange.record_parts(parts)
        if not result.errors:
            return {"data": result.data}
        for error in result.errors:
            _note(error)
        return {"errors": [problems.executed(error) for error in result.errors], "data": result.data}


async def _in_time(waiting: Any, seconds: float) -> ExecutionResult:
    """What comes of an execution that asks other services. Raises RequestError where that takes too long."""
    try:
        async with asyncio.timeout(seconds):
            result: ExecutionResult = await waiting
    except TimeoutError:
        raise problems.timed_out(seconds) from None
    return result


def _note(error: GraphQLError) -> None:
    """An error that no resolver meant to raise is a fault of the sandbox."""
    if error.original_error is not None and not isinstance(error.original_error, problems.ServiceError):
        _log.error("the resolver of %s failed: %s", error.path, type(error.original_error).__name__)


def _cap(root: executor.RootField, message: str) -> dict[str, Any]:
    return problems.stitched(message, [root.key], problems.locations_of(GraphQLError(message, root.node)))


def _out_of_scope(root: executor.RootField, caller: Caller) -> dict[str, Any] | None:
    """What a token of too few scopes is told about a root field; None where they are enough."""
    if root.name.startswith(SUPPLY) and not caller.may_supply:
        schema_name = problems.SCHEMA_NAME
    elif root.name.startswith(documents.DESIGN) and not caller.may_design:
        schema_name = problems.DESIGN_NAME
    else:
        return None
    return problems.out_of_scope([root.key], problems.locations_of(GraphQLError("", root.node)), schema_name)


def _token_fault(expired: bool, document: documents.Document) -> dict[str, Any]:
    field = document.first_field()
    if field is None:
        return problems.unauthorized(expired, None, [])
    key = field.alias.value if field.alias else field.name.value
    return problems.unauthorized(expired, [key], problems.locations_of(GraphQLError("", field)))
