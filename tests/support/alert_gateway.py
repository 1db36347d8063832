"""A gateway that has only what alerts read, in any state; `with_everything` has every condition at once."""

from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import CollectorRegistry

from proxy import config, errors
from proxy.alerts.schema_check import SchemaReport
from proxy.gateway.assembly import Gateway
from proxy.gateway.quota.accounts import ChargedAccounts, QuotaAccount
from proxy.gateway.quota.reservations import RefusedRequest
from proxy.kit import clock
from proxy.mapping import drift
from proxy.stores.open import MemoryStore
from proxy.stores.protocols import EntryUsage, ExhaustedQuota, LedgerEntry, Store
from proxy.telemetry import metrics
from proxy.upstream import policies
from proxy.upstream.auth import backoff

NOVEMBER = "2023-11"
API_KEY = "k3y-of-the-shop"


class QuotaState:
    """State of all quotas: of nothing is anything to be said, until a test changes a field."""

    def __init__(self) -> None:
        self.store_available = True
        self.used: dict[QuotaAccount, EntryUsage] = {}
        self.refused: dict[QuotaAccount, RefusedRequest] = {}
        self.exhausted: list[ExhaustedQuota] = []
        self.leaving: list[tuple[ChargedAccounts, EntryUsage]] = []
        self.exhaustion = SimpleNamespace(active=lambda: self.exhausted)

    def usages(self) -> list[tuple[QuotaAccount, EntryUsage]]:
        return list(self.used.items())

    def withheld(self) -> list[tuple[ChargedAccounts, EntryUsage]]:
        return self.leaving

    def use(self, account: QuotaAccount, used: int, uncertain: int = 0, period: str = NOVEMBER) -> None:
        self.used[account] = EntryUsage(LedgerEntry(account.name, period), used, uncertain, 0)


class TokenState:
    """State of the access tokens, by application."""

    def __init__(self) -> None:
        self.refusals: dict[str, errors.CredentialsRefused] = {}
        self.failures: dict[str, backoff.Backoff] = {}

    def refusal(self, application: str) -> errors.CredentialsRefused | None:
        return self.refusals.get(application)

    def failure(self, application: str) -> backoff.Backoff | None:
        return self.failures.get(application)

    def fail(self, application: str, error: errors.ServerError, failures: int, now: float) -> None:
        self.failures[application] = backoff.after(error, failures, now)


def make(
    time: clock.Clock | None = None, store: Store | None = None, applications: tuple[str, ...] = (), **alerts: Any
) -> Gateway:
    """Return a gateway of one process; `alerts` are settings. The credentials of an application are its name."""
    time = time or clock.ManualClock()
    fields = {
        "settings": config.Config(applications={}, alerts=config.AlertSettings(**alerts)),
        "clock": time,
        "metrics": metrics.Metrics(CollectorRegistry(), time),
        "store": store or MemoryStore(time),
        "quota": QuotaState(),
        "applications": SimpleNamespace(
            applications={name: SimpleNamespace(name=name, credentials=name) for name in applications},
            is_key=lambda text: text == API_KEY,
        ),
        "services": SimpleNamespace(tokens=TokenState()),
    }
    return cast(Gateway, SimpleNamespace(**fields))


def quota(gateway: Gateway) -> QuotaState:
    """The state of its quotas, to be changed."""
    return cast(QuotaState, gateway.quota)


def tokens(gateway: Gateway) -> TokenState:
    """The state of its tokens, to be changed."""
    return cast(TokenState, gateway.services.tokens)


def with_everything() -> tuple[Gateway, SchemaReport]:
    """A gateway and a report of the schema with a condition of every event that a process can see."""
    gateway = make(applications=("erp", "shop", "web"))
    state, now = quota(gateway), gateway.clock.now()
    state.use(QuotaAccount("erp", 20_000, "month"), 16_210, 40)
    account = QuotaAccount("erp/bom-tool", 500, "month")
    state.use(account, 496)
    state.refused[account] = RefusedRequest(NOVEMBER, 60)
    nightly = ChargedAccounts(QuotaAccount("web", 1_000, "month"), QuotaAccount("web/nightly", None, "month"), 200)
    state.leaving.append((nightly, EntryUsage(LedgerEntry("web", NOVEMBER), 790, 0, 0)))
    state.exhausted.append(ExhaustedQuota("shop", 1_701_388_800.0, "You have exceeded your part limit of 1000."))
    state.store_available = False
    gateway.metrics.circuit_breaker_openings["graphql",] = 1
    gateway.metrics.circuit_breaker_state["graphql",] = policies.OPEN
    refused = errors.CredentialsRefused("the identity service refuses application erp: invalid_client")
    tokens(gateway).refusals["erp"] = refused
    limit = errors.TokenLimit("the identity service asks application shop to wait", retry_after=60)
    tokens(gateway).fail("shop", limit, 1, now)
    tokens(gateway).fail("web", errors.UpstreamUnreachable("the identity service cannot be reached"), 4, now)
    gone = drift.Drift("SupPart.octopartUrl", "is gone", True, ("Part.octopart_url",))
    return gateway, SchemaReport(now, "a digest", "bridge-1", now, "", 120, (gone,))
