"""Diagnoses of part limits and features."""

import json
from typing import Any

import pytest
from support import cases

from proxy import config, errors
from proxy.doctor import plan
from proxy.gateway import usage
from proxy.gateway.applications import Applications
from proxy.store.protocol import LIFETIME, Usage
from proxy.upstream import classify, http_post

NOW = 1_700_000_000.0
LIMIT_100 = "You have exceeded your part limit of 100. Please upgrade your plan."


def application(**changes: Any) -> config.ApplicationSettings:
    return config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("key")),), **changes)


def probed(body: Any, status: int = 200) -> Any:
    reply = http_post.HttpResponse(status, json.dumps(body).encode())
    return plan.parse_probe(classify.read(plan.PROBE, reply, NOW), "demo")


def refused(message: str, **more: Any) -> dict[str, Any]:
    return {"data": None, "errors": [{"message": message, **more}]}


@pytest.mark.parametrize("status", [200, 500])
def test_probe_tells_an_exhausted_limit_from_a_missing_feature(status: int) -> None:
    exhausted = probed(refused(LIMIT_100), status)
    assert isinstance(exhausted, errors.QuotaExhausted)
    for body in (
        refused("no access", path=["supSearchMpn", "specAggs"]),
        refused("your plan lacks TECH_SPECS"),
        refused("This feature is part of the Pro plan"),
        {**refused("no access", path=["supSearchMpn", "specAggs"]), "data": {"supSearchMpn": {"hits": 0}}},
    ):
        assert isinstance(probed(body, status), plan.FeatureRefused)


@cases.parametrize("limit, parts, expected")
def test_part_limit_is_told_as_such(limit: Any, parts: Any, expected: list[list[str]]) -> None:
    findings = plan.limit_findings(plan.PartLimit(*limit), application(parts=parts), "demo")
    assert [[finding.code, finding.text] for finding in findings] == expected


def test_no_date_is_promised_for_a_plan_without_parts() -> None:
    (finding,) = plan.limit_findings(plan.PartLimit(0, True), application(), "demo")
    assert "no date changes this" in finding.advice


@cases.parametrize("parts, period, advice")
def test_reset_is_promised_only_for_a_quota_that_has_one(parts: int, period: Any, advice: str) -> None:
    configured = application(parts=parts, period=period)
    served = Applications({"demo": configured})
    account = next(iter(served.by_name.values())).account
    used = {(account, entry): Usage(account, entry, 10, 0, 0) for entry in ("2023-11", LIFETIME)}
    row, _ = usage.rows(served, used, {}, NOW)
    finding = plan.ledger_finding("demo", configured, row)
    assert (finding.code, finding.advice) == ("quota_exhausted", advice)


@pytest.mark.parametrize(
    "refusal, features, codes, unchecked",
    [
        (None, "all", ["feature_included", "skipped"], "LEAD_TIME"),
        (None, ("TECH_SPECS",), ["feature_included"], ""),
        (None, ("CAD_MODELS",), ["feature_unused", "skipped"], "CAD_MODELS (cad_models)"),
        (None, (), ["feature_unused"], ""),
        (plan.FeatureRefused("no"), "all", ["feature_missing", "skipped"], "DATASHEETS"),
        (plan.FeatureRefused("no"), (), [], ""),
        (errors.QuotaExhausted("x"), "all", ["skipped"], "TECH_SPECS (specs)"),
        (errors.QueryRefused("x"), ("TECH_SPECS",), ["skipped"], "TECH_SPECS (specs)"),
    ],
)
def test_features_are_compared_as_far_as_they_show(
    refusal: Any, features: Any, codes: list[str], unchecked: str
) -> None:
    findings = plan.feature_findings(refusal, application(features=features), "demo")
    assert [finding.code for finding in findings] == codes
    assert not unchecked or unchecked in findings[-1].text
