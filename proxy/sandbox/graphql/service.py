"""One GraphQL request from its bytes to an answer: read, authenticate, validate, check the caps, execute,
bill.

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
from proxy.sandbox import accounting, accounts, settings
from proxy.sandbox.catalog import store
from proxy.sandbox.graphql import context, documents, executor, limits, problems, requests, rules, schema
from proxy.sandbox.identity import tokens

Seen = Callable[[str, Mapping[str, Any]], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and the body to encode."""

    status: int
    body: dict[str, Any]


class QueryService:
    """Answers requests. `seen` is called with the document and variables of each that could be read."""

    def __init__(
        self,
        *,
        chosen: settings.Settings,
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
        self._started = clock.now()
        self._schema = schema.build()
        self._documents = documents.Documents(self._schema)

    def answer(self, body: bytes, token: str | None) -> Answer:
        """The answer to one POST body, whatever it holds."""
        try:
            answer = Answer(200, self._answer(requests.read(body), token))
        except problems.RequestError as refused:
            content: dict[str, Any] = {"errors": refused.errors}
            answer = Answer(refused.status, content | ({"data": None} if refused.null_data else {}))
        request_id = uuid.UUID(int=self._rng.getrandbits(128), version=4)
        answer.body["extensions"] = {"requestId": str(request_id)}
        return answer

    def _answer(self, request: requests.Request, token: str | None) -> dict[str, Any]:
        self._seen(request.query, request.variables)
        document = self._documents.read(request.query)
        account = self._authenticate(token, document)
        if document.node is None or document.faults:
            raise problems.RequestError(400, document.faults)
        bill = self._bill(account)
        prepared = executor.prepare(self._schema, document.node, bill, request.variables, request.operation_name)
        self._check(prepared, account)
        return self._execute(prepared, bill)

    def _bill(self, account: accounts.Account | None) -> context.Context:
        return context.Context(
            self._catalog,
            account,
            self._accounts,
            self._accounting,
            self._settings.site_url,
            self._started,
        )

    def _authenticate(self, token: str | None, document: documents.Document) -> accounts.Account | None:
        """Who asks; None for somebody unknown who asks for nothing but the schema."""
        expired = False
        try:
            account = self._accounts.by_client(self._tokens.client_of(token or ""))
        except tokens.InvalidTokenError:
            account = None
        except tokens.ExpiredTokenError:
            account, expired = None, True
        if account is None and self._settings.no_auth:
            return self._accounts.all[0]
        if account is None and not document.is_introspection():
            raise problems.RequestError(401, [_token_fault(expired, document)])
        return account

    def _check(self, prepared: executor.SupplyExecutor, account: accounts.Account | None) -> None:
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
            used_up = problems.part_limit(account.part_limit)
            raise problems.RequestError(self._settings.part_limit_status, [used_up], null_data=True)
        over = [_cap(one, message) for one in roots for message in limits.violations(one.name, one.arguments)]
        if over:
            raise problems.RequestError(200, over)

    def _is_used_up(self, roots: Sequence[executor.RootField], account: accounts.Account) -> bool:
        return any(one.name in limits.PART_FIELDS for one in roots) and self._accounting.used_up(account)

    def _execute(self, prepared: executor.SupplyExecutor, bill: context.Context) -> dict[str, Any]:
        result = prepared.execute_operation()
        if not isinstance(result, ExecutionResult):
            raise TypeError("the execution did not complete at once")
        if bill.account is not None:
            self._accounting.book(bill.account.application_id, bill.parts(result.data))
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
