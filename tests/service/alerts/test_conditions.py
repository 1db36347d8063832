"""Tests of the conditions that a process reads from its state."""

from typing import Any

import pytest
from service.alerts.conftest import MakeGateway
from support import alert_gateway

from proxy import errors
from proxy.alerts import conditions
from proxy.alerts.schema_check import SchemaReport
from proxy.gateway.assembly import Gateway
from proxy.gateway.callers import NewClient
from proxy.gateway.quota.accounts import QuotaAccount
from proxy.gateway.quota.exhaustion import NEVER
from proxy.gateway.quota.reservations import RefusedRequest
from proxy.kit import clock
from proxy.mapping import drift
from proxy.stores.protocols import ExhaustedQuota
from proxy.upstream import policies

PLAN = QuotaAccount("demo", 1000, "month")


def read(gateway: Gateway, report: SchemaReport | None = None) -> list[conditions.AlertCondition]:
    return conditions.Observer().read(gateway, report)


def events(gateway: Gateway, observer: conditions.Observer | None = None) -> list[str]:
    return [each.event for each in (observer or conditions.Observer()).read(gateway, None)]


def test_nothing_is_reported_without_a_reason(make_gateway: MakeGateway) -> None:
    gateway = make_gateway(applications=("demo",))
    alert_gateway.quota(gateway).use(PLAN, 499)
    assert read(gateway) == []


@pytest.mark.parametrize(
    "used,uncertain,threshold,severity,implied",
    [(500, 0, 50, "warning", 0), (790, 10, 80, "warning", 1), (951, 0, 95, "critical", 2)],
)
def test_highest_threshold_is_reported(
    make_gateway: MakeGateway, used: int, uncertain: int, threshold: int, severity: str, implied: int
) -> None:
    gateway = make_gateway()
    alert_gateway.quota(gateway).use(PLAN, used, uncertain)
    (condition,) = read(gateway)
    assert (condition.details["threshold"], condition.severity, len(condition.implied)) == (
        threshold,
        severity,
        implied,
    )


def test_threshold_has_a_key_for_each_period_and_limit(make_gateway: MakeGateway) -> None:
    keys = set()
    for limit, period in ((1000, "2023-11"), (1000, "2023-12"), (1100, "2023-11")):
        gateway = make_gateway()
        alert_gateway.quota(gateway).use(QuotaAccount("demo", limit, "month"), 600, period=period)
        keys |= {each.key for each in read(gateway)}
    assert len(keys) == 3


@pytest.mark.parametrize("limit", [None, 0])
def test_accounts_without_a_quota_are_never_exhausted(make_gateway: MakeGateway, limit: int | None) -> None:
    gateway = make_gateway()
    alert_gateway.quota(gateway).use(QuotaAccount("demo", limit, "month"), 10_000)
    assert read(gateway) == []


@pytest.mark.parametrize(
    "used,refused,exhausted",
    [
        (1000, None, True),
        (999, None, False),
        (990, RefusedRequest("2023-11", 20), True),
        (990, RefusedRequest("2023-11", 10), False),  # parts have been released since
        (990, RefusedRequest("2023-10", 20), False),
    ],
)
def test_limit_is_exhausted_when_requests_are_refused(
    make_gateway: MakeGateway, used: int, refused: RefusedRequest | None, exhausted: bool
) -> None:
    gateway = make_gateway(thresholds=())
    state = alert_gateway.quota(gateway)
    state.use(PLAN, used)
    if refused:
        state.refused[PLAN] = refused
    assert events(gateway) == (["quota.exhausted"] if exhausted else [])


def test_quota_that_is_never_reset_has_no_date(make_gateway: MakeGateway) -> None:
    gateway = make_gateway()
    alert_gateway.quota(gateway).exhausted.append(ExhaustedQuota("demo", NEVER, "used"))
    assert read(gateway)[0].details["until"] is None


def test_api_keys_in_messages_of_the_upstream_are_hidden(make_gateway: MakeGateway) -> None:
    gateway = make_gateway(applications=("demo", "erp", "web"))
    said, now = f"refused: q={alert_gateway.API_KEY}&apikey=another", gateway.clock.now()
    alert_gateway.quota(gateway).exhausted.append(ExhaustedQuota("demo", NEVER, said))
    tokens = alert_gateway.tokens(gateway)
    tokens.refusals["demo"] = errors.CredentialsRefused(said)
    tokens.fail("erp", errors.TokenLimit(said, retry_after=60), 1, now)
    tokens.fail("web", errors.UpstreamUnreachable(said), 4, now)
    details = [condition.details for condition in read(gateway)]
    assert [each.get("reason", each.get("cause")) for each in details] == ["refused: q=…&apikey=…"] * 4


def test_breaker_is_reported_while_it_is_open_and_once_after(make_gateway: MakeGateway) -> None:
    gateway, observer = make_gateway(), conditions.Observer()
    assert events(gateway, observer) == []
    gateway.metrics.circuit_breaker_openings["identity",] += 1
    gateway.metrics.circuit_breaker_state["identity",] = policies.OPEN
    assert events(gateway, observer) == ["breaker.open"]
    gateway.metrics.circuit_breaker_state["identity",] = policies.HALF_OPEN
    assert events(gateway, observer) == ["breaker.open"]
    gateway.metrics.circuit_breaker_state["identity",] = policies.CLOSED
    assert events(gateway, observer) == []
    gateway.metrics.circuit_breaker_openings["identity",] += 1  # and closed at once
    assert events(gateway, observer) == ["breaker.open"]
    assert events(gateway, observer) == []


@pytest.mark.parametrize(
    "error,failures",
    [(errors.UpstreamUnreachable("away"), 3), (errors.TokenLimit("too many", retry_after=600), 1)],
)
def test_failed_token_requests_are_over_after_a_quiet_while(
    make_gateway: MakeGateway, time: clock.ManualClock, error: Any, failures: int
) -> None:
    gateway = make_gateway(applications=("demo",))
    state = alert_gateway.tokens(gateway)
    state.fail("demo", error, failures, time.now())
    time.advance(state.failures["demo"].until - time.now() + conditions.QUIET_SECONDS - 1)
    (condition,) = read(gateway)
    assert condition.over == "Application demo gets tokens again, or has requested none for 5 minutes."
    time.advance(1)
    assert read(gateway) == []
    time.advance(-3600)  # a clock that is set back makes no old failure a new one
    assert read(gateway) == []
    state.fail("demo", error, failures + 1, time.now())
    assert len(read(gateway)) == 1


def test_drift_that_breaks_nothing_is_a_warning(make_gateway: MakeGateway) -> None:
    found = [drift.Drift("SupPart.name", "may be null now", False, ("Part.name",))]
    for breaks, severity in ((False, "warning"), (True, "critical")):
        found.append(drift.Drift("SupPart.mpn", "is gone", breaks, ("Part.mpn", "Part.name")))
        (condition,) = read(make_gateway(), SchemaReport(1, "", "m", 1, "", 120, tuple(found)))
        assert condition.severity == severity
        assert condition.details["affected"] == ["Part.name", "Part.mpn"]


def test_single_new_client_is_named() -> None:
    condition = conditions.new_clients([NewClient("erp", "bom-tool", "", 0)])
    assert condition.title == ("API key erp/bom-tool is used by a program that had not used it before: no User-Agent.")


def test_every_title_is_one_sentence() -> None:
    for each in conditions.Observer().read(*alert_gateway.with_everything()):
        for sentence in filter(None, (each.title, each.over)):
            assert sentence.endswith(".")
            assert "\n" not in sentence
