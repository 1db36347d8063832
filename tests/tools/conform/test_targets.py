"""Targets of configurations: which application is under test, and which ones meet conditions."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy import config, errors
from proxy.tools.conform import targets
from proxy.tools.conform.results import Plan

GUID = "00000000-0000-4000-8000-00000000000a"


def _target(
    folder: Path, applications: dict[str, Any], name: str | None = None, host: str = "api.nexar.com"
) -> targets.ConfiguredTarget:
    from proxy.config import loader

    credentials = {"client_id": "our-client", "client_secret": "our-secret"}
    entries = {key: {"apikeys": [f"key-of-{key}"], **credentials, **entry} for key, entry in applications.items()}
    upstream = {"graphql_url": f"https://{host}/graphql", "token_url": "https://identity.example/token"}
    (folder / "our.yaml").write_text(yaml.safe_dump({"upstream": upstream, "applications": entries}))
    settings = loader.load(folder / "our.yaml", {"USER": "user-token"})
    assert isinstance(settings.upstream, config.UpstreamSettings)
    return targets.from_config(settings, settings.upstream, name)


def test_the_application_under_test_is_the_first_one_with_parts(tmp_path: Path) -> None:
    applications = {"none": {"parts": 0}, "first": {"parts": 100, "period": "lifetime"}, "second": {}}
    chosen = _target(tmp_path, applications)
    assert (chosen.name, str(chosen.plan)) == ("first", "all features; 100 parts once")
    assert _target(tmp_path, applications, "second").name == "second"
    assert _target(tmp_path, {"none": {"parts": 0}}).name == "none"


def test_further_applications_meet_conditions(tmp_path: Path) -> None:
    applications = {
        "full": {"reconcile": {"application_id": GUID, "token": "env:USER"}},
        "none": {"parts": 0, "client_id": "none-client"},
        "less": {"features": ["DATASHEETS"], "client_id": "less-client"},
    }
    accounts = _target(tmp_path, applications).target.accounts
    assert {needs: (each.client_id, each.token) for needs, each in accounts.items()} == {
        None: ("our-client", None),
        "no_parts": ("none-client", None),
        "feature_missing": ("less-client", None),
        "user_token": ("", "user-token"),
    }
    assert accounts["feature_missing"].features == frozenset({"DATASHEETS"})
    assert accounts["user_token"].application_id == GUID
    assert _target(tmp_path, {"full": {}}).target.accounts.keys() == {None}


@pytest.mark.parametrize("host, service", [("api.nexar.com", "Nexar"), ("gateway.company.example", "another service")])
def test_no_other_host_than_the_vendors_is_named(tmp_path: Path, host: str, service: str) -> None:
    assert _target(tmp_path, {"demo": {}}, host=host).service == service


@pytest.mark.parametrize(
    "entry, name, message",
    [
        ({}, "other", "--application: 'other' is none of demo"),
        ({"reconcile": {"application_id": GUID, "token": "env:NONE"}}, None, "applications.demo.reconcile.token: "),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, entry: dict[str, Any], name: str | None, message: str) -> None:
    with pytest.raises(errors.ConfigError, match=message):
        _target(tmp_path, {"demo": entry}, name)


def test_a_plan_is_described_in_words() -> None:
    assert str(Plan()) == "all features; unlimited parts"
    assert str(Plan(("DATASHEETS",), 1000)) == "DATASHEETS; 1,000 parts a month"
    assert str(Plan((), 0)) == "no features; 0 parts a month"
