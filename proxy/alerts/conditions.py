"""Conditions that are reported as alerts, read from the state of a gateway; nothing here sends or waits.

A condition is true while it is returned. What is over before the next reading must still be seen: circuit breakers
count how often they opened.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import config
from proxy.alerts.alert import Severity
from proxy.alerts.schema_check import SchemaReport
from proxy.gateway.assembly import Gateway
from proxy.gateway.callers import NewClient
from proxy.gateway.quota.accounts import LIFETIME, QuotaAccount
from proxy.gateway.quota.exhaustion import NEVER
from proxy.kit.wording import counted, rfc3339
from proxy.redaction import Redaction
from proxy.stores.protocols import EntryUsage
from proxy.upstream import policies
from proxy.upstream.auth import backoff

FAILURES = 3  # failed token requests in a row that are reported
QUIET_SECONDS = 300.0  # without a failed token request, after the back-off of the last one, that end its condition
CRITICAL_PERCENT = 95  # thresholds from here are critical
PLACES_MAX = 20  # differences of the schema that an alert names
CLIENTS_MAX = 10  # new clients that an alert names

_MONTH_SECONDS = 62 * 86_400.0  # longer than a month, so that a threshold is reported once in it
_LIFETIME_SECONDS = 36_525 * 86_400.0  # a hundred years: once
_SERVICES = {"graphql": "the GraphQL service", "identity": "the identity service"}


class AlertCondition(NamedTuple):
    """Condition that holds now. `key` names it over all workers, `title` and `over` are sentences for begin and end.

    `fingerprint`: with another one it is reported again. `flaps`: it may come and go, and is reported once in the
    setting `repeat_seconds`. `once`: seconds in which it is reported once, for one that has no end (0: it has one);
    those in `implied` need no report of their own then.
    """

    key: str
    event: config.AlertEvent
    severity: Severity
    title: str
    details: dict[str, Any]
    over: str = ""
    fingerprint: str = ""
    flaps: bool = False
    once: float = 0.0
    implied: tuple[str, ...] = ()


class Observer:
    """Reads the conditions of this process, with the memory that this needs."""

    def __init__(self) -> None:
        self._openings: dict[str, float] = {}

    def read(self, gateway: Gateway, report: SchemaReport | None) -> list[AlertCondition]:
        """Return every condition that holds now, or did since the last reading."""
        hidden = Redaction(is_key=gateway.applications.is_key)
        conditions = (
            *_quotas(gateway),
            *self._breakers(gateway),
            *_tokens(gateway),
            *_store(gateway),
            *(_drift(report) if report is not None else ()),
        )
        return [_redacted(condition, hidden) for condition in conditions]

    def _breakers(self, gateway: Gateway) -> Iterator[AlertCondition]:
        metrics = gateway.metrics
        for name, service in _SERVICES.items():
            openings = metrics.circuit_breaker_openings[name,]
            has_opened = openings > self._openings.get(name, 0)
            self._openings[name] = openings
            state = metrics.circuit_breaker_state.get((name,), policies.CLOSED)
            if has_opened or state != policies.CLOSED:
                yield AlertCondition(
                    f"breaker {name}",
                    "breaker.open",
                    "critical",
                    f"The circuit breaker of {service} is open: it failed repeatedly, and requests are refused.",
                    {"service": name, "openings": int(openings)},
                    over=f"The circuit breaker of {service} is closed.",
                    flaps=True,
                )


def new_clients(clients: Sequence[NewClient]) -> AlertCondition:
    """Return the report of clients that called for the first time: all of some minutes together."""
    first, count = clients[0], len(clients)
    user_agent = first.user_agent or "no User-Agent"
    title = f"API key {first.application}/{first.key} is used by a program that had not used it before: {user_agent}."
    return AlertCondition(
        "new clients",
        "client.new",
        "info",
        title if count == 1 else f"{count} programs use API keys that they had not used before.",
        {
            "count": count,
            "clients": [
                {
                    "application": client.application,
                    "key": client.key,
                    "user_agent": client.user_agent,
                    "first_seen": rfc3339(client.first),
                }
                for client in clients[:CLIENTS_MAX]
            ],
        },
    )


def _redacted(condition: AlertCondition, hidden: Redaction) -> AlertCondition:
    """Hide API keys in what an upstream service has said: it may quote a request."""
    said = {name: hidden.text(condition.details[name]) for name in ("reason", "cause") if name in condition.details}
    return condition._replace(details=condition.details | said)


def _quotas(gateway: Gateway) -> Iterator[AlertCondition]:
    quota = gateway.quota
    for account, usage in quota.usages():
        yield from _threshold(account, usage, gateway.settings.alerts.thresholds)
        refused = quota.refused.get(account)
        remaining = _remaining(account, usage)
        # A limit of 0 is how an operator switches a key off: no news.
        if account.limit and (
            remaining == 0 or (refused and refused.period == usage.entry.period and refused.parts > remaining)
        ):
            yield AlertCondition(
                f"limit {account.name}",
                "quota.exhausted",
                "critical",
                f"{account.name} has {remaining:,} of {account.limit:,} parts left ({usage.entry.period}): "
                "requests that may cost more are refused.",
                {**figures(account, usage), "cause": "limit of the configuration"},
                over=f"{account.name} has parts again: no request is refused for want of them.",
            )
    for accounts, usage in quota.withheld():
        application, key = accounts.application, accounts.key.name
        remaining = _remaining(application, usage)
        yield AlertCondition(
            f"leaves {key}",
            "quota.exhausted",
            "warning",
            f"{application.name} has {remaining:,} of {application.limit:,} parts left ({usage.entry.period}), and "
            f"{key} leaves the last {accounts.leaves:,} to other API keys: what may cost more is refused.",
            {
                **figures(application, usage),
                "api_key": key,
                "leaves": accounts.leaves,
                "cause": "leaves of the API key",
            },
            over=f"{key} has parts again beside those that it leaves to other API keys.",
        )
    for exhausted in quota.exhaustion.active():
        until = None if exhausted.until >= NEVER else rfc3339(exhausted.until)
        yield AlertCondition(
            f"exhausted {exhausted.account}",
            "quota.exhausted",
            "critical",
            f"The upstream refuses requests of {exhausted.account}: its parts are used.",
            {"quota_account": exhausted.account, "until": until, "cause": exhausted.reason},
            over=f"Requests of {exhausted.account} are sent to the upstream again.",
        )


def _threshold(account: QuotaAccount, usage: EntryUsage, thresholds: tuple[int, ...]) -> Iterator[AlertCondition]:
    """Yield the highest threshold that is reached: a service that starts with 96 % used reports 95 %, not 50 %, too."""
    limit, used = account.limit, usage.used + usage.uncertain
    reached = sorted(percent for percent in thresholds if limit and used * 100 >= percent * limit)
    if not reached:
        return
    period = usage.entry.period
    # With the limit: 80 % of a larger plan is news.
    keys = [f"threshold {account.name} {period} {percent} of {limit}" for percent in reached]
    yield AlertCondition(
        keys[-1],
        "quota.threshold",
        "critical" if reached[-1] >= CRITICAL_PERCENT else "warning",
        f"{account.name} has used {used:,} of {limit:,} parts ({period}): {reached[-1]} % of the limit is reached.",
        {**figures(account, usage), "threshold": reached[-1]},
        once=_LIFETIME_SECONDS if period == LIFETIME else _MONTH_SECONDS,
        implied=tuple(keys[:-1]),
    )


def _remaining(account: QuotaAccount, usage: EntryUsage) -> int:
    return max(0, (account.limit or 0) - usage.used - usage.uncertain)


def figures(account: QuotaAccount, usage: EntryUsage) -> dict[str, Any]:
    """Return the details that all alerts of a quota account have."""
    return {
        "quota_account": account.name,
        "period": usage.entry.period,
        "used": usage.used,
        "uncertain": usage.uncertain,
        "limit": account.limit,
        "remaining": _remaining(account, usage),
    }


def _tokens(gateway: Gateway) -> Iterator[AlertCondition]:
    tokens = gateway.services.tokens
    for name, application in gateway.applications.applications.items():
        refusal, failure = tokens.refusal(application.credentials), tokens.failure(application.credentials)
        if refusal is not None:
            yield _refused(name, refusal.message)
        elif failure is not None and failure.kind == "CredentialsRefused":
            yield _refused(name, failure.message)
        elif failure is None or not _is_recent(failure, gateway.clock.now()):
            continue
        elif failure.kind == "TokenLimit":
            yield _token_limit(name, failure)
        elif failure.failures >= FAILURES:
            yield AlertCondition(
                f"token {name}",
                "token.failing",
                "critical",
                f"Application {name} gets no token: {counted(failure.failures, 'request')} failed in a row.",
                {"application": name, "failures": failure.failures, "reason": failure.message},
                over=_tokens_again(name),
                flaps=True,
            )


def _is_recent(failure: backoff.Backoff, now: float) -> bool:
    """Return whether a failure still says something: a worker that no further request reaches asks for no token, and
    does not learn that the others have one."""
    return failure.is_active(now) or 0 <= now - failure.until < QUIET_SECONDS


def _tokens_again(name: str) -> str:
    return f"Application {name} gets tokens again, or has requested none for {QUIET_SECONDS / 60:.0f} minutes."


def _refused(name: str, reason: str) -> AlertCondition:
    return AlertCondition(
        f"credentials {name}",
        "token.refused",
        "critical",
        f"The credentials of application {name} are refused, so that its requests fail.",
        {"application": name, "reason": reason},
        over=f"The credentials of application {name} are accepted.",
        flaps=True,
    )


def _token_limit(name: str, failure: backoff.Backoff) -> AlertCondition:
    return AlertCondition(
        f"token limit {name}",
        "token.limit",
        "critical",
        f"Application {name} gets no token: the rate limit of token requests is exceeded.",
        {"application": name, "until": rfc3339(failure.until), "reason": failure.message},
        over=_tokens_again(name),
        flaps=True,
    )


def _store(gateway: Gateway) -> Iterator[AlertCondition]:
    if not gateway.quota.store_available:
        yield AlertCondition(
            "store",
            "store.unavailable",
            "critical",
            "The store is unavailable: usage is kept in memory, and accounts with a limit get 503.",
            {"store": gateway.settings.store.shown},
            over="The store is available again.",
            flaps=True,
        )


def _drift(report: SchemaReport) -> Iterator[AlertCondition]:
    if not report.drifts:
        return
    breaking = [drift for drift in report.drifts if drift.breaks]
    affected = list(dict.fromkeys(name for drift in report.drifts for name in drift.affected))
    yield AlertCondition(
        "schema",
        "schema.drift",
        "critical" if breaking else "warning",
        f"The upstream's schema has changed in {counted(len(report.drifts), 'place')} that the mappings read.",
        {
            "drifts": msgspec.to_builtins(report.drifts[:PLACES_MAX]),
            "count": len(report.drifts),
            "breaking": len(breaking),
            "affected": affected[: 5 * PLACES_MAX],
        },
        over="The upstream's schema has all that the mappings read.",
        # So that a second field that goes is reported, too.
        fingerprint=hashlib.sha256(
            repr([(drift.place, drift.problem) for drift in report.drifts]).encode()
        ).hexdigest(),
    )
