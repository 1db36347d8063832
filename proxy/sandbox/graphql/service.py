"""One GraphQL request from its parameters to an answer: authenticate, validate, check the caps, execute, bill.

The order is the service's as far as it is known: a token fault comes before a fault of the document, only
questions about the schema need no token (contract graphql.md §3). HTTP is transport.py's.
"""

import logging
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import ExecutionResult, GraphQLError

from proxy.kit import clock as clocks
from proxy.sandbox import accounting, accounts, faults, settings
from proxy.sandbox.catalog import store
from proxy.sandbox.graphql import allowance, context, documents, executor, limits, problems, requests, rules, surfaces
from proxy.sandbox.identity import tokens
from proxy.sandbox.injection import exchanges, injector

Seen = Callable[[str, Mapping[str, Any]], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and the body to encode. `fixed`: the status is the same in every media type."""

    status: int
    body: dict[str, Any]
    fixed: bool = False


class QueryService:
    """Answers requests. `seen` is called with the document and variables of each that could be read."""

    def __init__(
        self,
        *,
        chosen: settings.Settings,
        surfaces_of: surfaces.Surfaces,
        drawing: injector.Injector,
        catalog: store.Catalog,
        known: accounts.Accounts,
        counted: accounting.Accounting,
        issued: tokens.Tokens,
        clock: clocks.Clock,
        rng: random.Random,
        seen: Seen,
    ) -> None:
        self._settings, self._catalog, self._accounts = chosen, catalog, known
        self._accounting, self._tokens, self._rng, self._seen = counted, issued, rng, seen
        self._clock, self._started = clock, clock.now()
        self._injector, self._surfaces = drawing, surfaces_of

    def answer(self, request: requests.Request, token: str | None, exchange: exchanges.Exchange) -> Answer:
        """The answer to one request, whatever its document and its token."""
        try:
            return self._signed(Answer(200, self._answer(request, token, exchange)))
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

    def _answer(self, request: requests.Request, token: str | None, exchange: exchanges.Exchange) -> dict[str, Any]:
        self._seen(request.query, request.variables)
        missing, whole = self._injector.missing, self._surfaces.whole
        surface = self._surfaces.without(missing) if missing else whole
        document = surface.documents.read(request.query)
        exchange.entry.operation, exchange.entry.fields = document.asked(request.operation_name)
        if request.safe and not document.is_query(request.operation_name):
            raise problems.not_safe()
        account = self._authenticate(token, document, exchange)
        exchange.entry.application = account.application_id if account else None
        if document.node is None or document.faults:
            if missing and not whole.documents.read(request.query).faults:
                exchange.struck(faults.MissingField)
            raise problems.RequestError(400, document.faults)
        bill = self._bill(account)
        allowed = allowance.Allowance(self._clock, self._settings.execution_timeout, self._settings.answer_fields)
        prepared = executor.prepare(
            surface.schema,
            document.node,
            bill,
            request.variables,
            operation_name=request.operation_name,
            allowed=allowed,
        )
        self._check(prepared, account, exchange)
        return self._execute(prepared, bill, exchange)

    def _bill(self, account: accounts.Account | None) -> context.Context:
        return context.Context(
            self._catalog,
            account,
            self._accounts,
            self._accounting,
            self._settings.site_url,
            self._started,
        )

    def _authenticate(
        self, token: str | None, document: documents.Document, exchange: exchanges.Exchange
    ) -> accounts.Account | None:
        """Who asks; None for somebody unknown who asks for nothing but the schema."""
        if exchange.fault is not None:
            self._strike_token(token or "", document, exchange)
        expired = False
        try:
            account = self._accounts.by_client_id(self._tokens.client_of(token or ""))
        except tokens.InvalidTokenError:
            account = None
        except tokens.ExpiredTokenError as error:
            account, expired = None, True
            if isinstance(error, tokens.EndedTokenError):
                exchange.struck(faults.ExpiredToken)
        if account is None and self._settings.no_auth:
            return self._accounts.all[0]
        if account is None and not document.is_introspection():
            raise problems.RequestError(401, [_token_fault(expired, document)], fixed=True)
        return account

    def _strike_token(self, token: str, document: documents.Document, exchange: exchanges.Exchange) -> None:
        if isinstance(exchange.fault, faults.ExpiredToken):
            self._tokens.end(token)
        if isinstance(exchange.fault, faults.InvalidToken):
            exchange.struck(faults.InvalidToken)
            raise problems.RequestError(401, [_token_fault(False, document)], fixed=True)

    def _check(
        self, prepared: executor.SupplyExecutor, account: accounts.Account | None, exchange: exchanges.Exchange
    ) -> None:
        """Everything that is refused before a field is resolved."""
        try:
            roots = prepared.root_fields()
        except GraphQLError as error:
            raise problems.RequestError(400, [problems.variable(error)]) from error
        missing = [one.node for one in roots if one.name in limits.SEARCHES and one.arguments.get("q") is None]
        if missing:
            errors = [rules.required_argument("Query", node, "q") for node in missing]
            raise problems.RequestError(400, [{**error.formatted} for error in errors])
        if account is not None and self._is_used_up(roots, account):
            limit = self._accounting.limit(account)
            if limit < account.part_limit:
                exchange.struck(faults.Quota)
            used_up = problems.part_limit(limit)
            raise problems.RequestError(self._settings.part_limit_status, [used_up], null_data=True, fixed=True)
        over = [_cap(one, message) for one in roots for message in limits.violations(one.name, one.arguments)]
        if over:
            raise problems.RequestError(200, over)

    def _is_used_up(self, roots: Sequence[executor.RootField], account: accounts.Account) -> bool:
        return any(one.name in limits.PART_FIELDS for one in roots) and self._accounting.used_up(account)

    def _execute(
        self, prepared: executor.SupplyExecutor, bill: context.Context, exchange: exchanges.Exchange
    ) -> dict[str, Any]:
        result = prepared.execute_operation()
        if not isinstance(result, ExecutionResult):
            raise TypeError("the execution did not complete at once")
        if prepared.allowance.refused is not None:
            raise prepared.allowance.refused
        if bill.account is not None:
            parts = bill.parts(result.data)
            self._accounting.book(bill.account.application_id, parts)
            exchange.billed(parts)
        if not result.errors:
            return {"data": result.data}
        for error in result.errors:
            _note(error)
        return {"errors": [problems.executed(error) for error in result.errors], "data": result.data}


def _note(error: GraphQLError) -> None:
    """An error that no resolver meant to raise is a fault of the sandbox."""
    if error.original_error is not None and not isinstance(error.original_error, problems.ServiceError):
        _log.error("the resolver of %s failed: %s", error.path, type(error.original_error).__name__)


def _cap(root: executor.RootField, message: str) -> dict[str, Any]:
    return problems.stitched(message, [root.key], problems.locations_of(GraphQLError(message, root.node)))


def _token_fault(expired: bool, document: documents.Document) -> dict[str, Any]:
    field = document.first_field()
    if field is None:
        return problems.unauthorized(expired, None, [])
    key = field.alias.value if field.alias else field.name.value
    return problems.unauthorized(expired, [key], problems.locations_of(GraphQLError("", field)))
