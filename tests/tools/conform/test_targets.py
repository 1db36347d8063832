"""Targets of configurations: which application is under test, and which ones meet conditions."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy import config, errors
from proxy.tools.conform import targets

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
        "full": {},
        "none": {"parts": 0, "client_id": "none-client"},
        "less": {"features": ["DATASHEETS"], "client_id": "less-client"},
    }
    accounts = _target(tmp_path, applications).target.accounts
    assert {needs: each.client_id for needs, each in accounts.items()} == {
        None: "our-client",
        "no_parts": "none-client",
        "feature_missing": "less-client",
    }
    assert accounts["feature_missing"].features == frozenset({"DATASHEETS"})
    assert _target(tmp_path, {"full": {}}).target.accounts.keys() == {None}


@pytest.mark.parametrize("host, service", [("api.nexar.com", "Nexar"), ("gateway.company.example", "another service")])
def test_no_other_host_than_the_vendors_is_named(tmp_path: Path, host: str, service: str) -> None:
    assert _target(tmp_path, {"demo": {}}, host=host).service == service


def test_an_unknown_application_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match="--application: 'other' is none of demo"):
        _target(tmp_path, {"demo": {}}, "other")
