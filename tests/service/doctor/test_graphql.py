"""Diagnoses of GraphQL responses, and findings about schema drift."""

import json
from typing import Any

import pytest
from support import cases

from proxy import errors
from proxy.doctor import graphql
from proxy.mapping import drift
from proxy.upstream import classify, http_post

NOW = 1_700_000_000.0


def answered(status: int, body: Any, retry_after: str | None = None) -> Any:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    answer = classify.read(graphql.FREE, http_post.HttpResponse(status, raw, retry_after), NOW)
    return graphql.data_of(answer, "demo")


def coded(code: str, **more: Any) -> dict[str, Any]:
    return {"errors": [{"message": "…", "extensions": {"code": code}}], **more}


@cases.parametrize("status, body, code, application")
def test_response_has_one_diagnosis(status: int, body: Any, code: str, application: str | None) -> None:
    with pytest.raises(graphql.DiagnosedError) as raised:
        answered(status, body)
    assert (raised.value.finding.code, raised.value.finding.application) == (code, application)
    assert raised.value.finding.advice


def test_wrong_path_asks_for_the_address_and_a_page_for_a_login_page_as_well() -> None:
    advice = []
    for body in ("no Route matched", "<html>welcome to the guest network</html>"):
        with pytest.raises(graphql.DiagnosedError) as raised:
            answered(404, body)
        advice.append(raised.value.finding.advice)
    assert advice[0] == "check the address in upstream.graphql_url"
    assert "a login page of the network" in advice[1]


def test_refused_query_and_exhausted_quota_are_left_to_the_stage() -> None:
    with pytest.raises(errors.QueryRefused):
        answered(400, {"errors": [{"message": "The field `x` does not exist on the type `Query`."}]})
    with pytest.raises(errors.QuotaExhausted):
        answered(200, {"errors": [{"message": "You have exceeded your part limit of 5."}], "data": None})


def test_data_counts_whatever_errors_are_beside_it() -> None:
    data = answered(200, {"data": {"supCategories": []}, "errors": [{"message": "a field failed"}]})
    assert data == {"supCategories": []}


def test_drift_names_the_v3_fields_and_how_many_more() -> None:
    broken = graphql.drift_finding(drift.Drift("SupOffer.moq", "is gone", True, ("Part.offers.moq",)))
    assert (broken.code, broken.outcome) == ("schema_drift", "failed")
    assert broken.text == "SupOffer.moq is gone; without its source: Part.offers.moq"
    many = tuple(f"Part.field{number}" for number in range(9))
    changed = graphql.drift_finding(drift.Drift("SupPart.mpn", "may be null now", False, many))
    assert (changed.code, changed.outcome) == ("schema_changed", "warning")
    assert changed.text.endswith("read from it: " + ", ".join(many[:6]) + " and 3 more")
