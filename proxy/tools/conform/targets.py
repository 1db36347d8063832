"""Target of a run from a configuration: its addresses, the application under test, and others for conditions."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from proxy import config, errors
from proxy.tools.conform.probes import Account, Target
from proxy.tools.conform.results import Plan, Service

# The vendor advises at most 300 requests a minute (contract graphql.md §2.1).
QUERIES_A_SECOND = 5.0
_HOST = "api.nexar.com"


class ConfiguredTarget(NamedTuple):
    """Target with the application under test: its name, its settings and its plan; `service` names no host but the
    vendor's."""

    target: Target
    name: str
    application: config.ApplicationSettings
    service: Service

    @property
    def plan(self) -> Plan:
        """The plan, as configured."""
        return Plan(
            "all" if self.application.features == "unknown" else self.application.features,
            self.application.parts,
            self.application.period,
        )


def from_config(settings: config.Config, upstream: config.UpstreamSettings, name: str | None) -> ConfiguredTarget:
    """Return the target of a configuration. `name` is the application under test; by default the first one with parts.
    Raises ConfigError."""
    applications = settings.applications
    name = name or next((key for key, entry in applications.items() if entry.parts != 0), next(iter(applications)))
    if name not in applications:
        raise errors.ConfigError(f"--application: {name!r} is none of {', '.join(applications)}")
    accounts = {None: _account(name, applications[name]), **_conditions(applications)}
    target = Target(upstream.graphql_url, upstream.token_url, accounts, upstream.scope, QUERIES_A_SECOND)
    host = urlsplit(upstream.graphql_url).hostname
    return ConfiguredTarget(target, name, applications[name], "Nexar" if host == _HOST else "another service")


def _conditions(applications: Mapping[str, config.ApplicationSettings]) -> dict[str | None, Account]:
    """Return the first application that meets each condition."""
    accounts: dict[str | None, Account] = {}
    for name, entry in applications.items():
        if entry.parts == 0:
            accounts.setdefault("no_parts", _account(name, entry))
        elif "TECH_SPECS" not in entry.allowed_features:
            accounts.setdefault("feature_missing", _account(name, entry))
    return accounts


def _account(name: str, entry: config.ApplicationSettings) -> Account:
    if entry.client_id is None or entry.client_secret is None:
        raise errors.ConfigError(f"applications.{name}: conform needs its client_id and client_secret")
    return Account(str(entry.client_id), entry.client_secret.reveal(), features=entry.allowed_features)
