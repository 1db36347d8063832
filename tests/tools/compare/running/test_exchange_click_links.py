"""Tests of the owners of click links in responses of the GraphQL API."""

import json
from typing import Any

from proxy.tools.compare.running.exchange import click_link_owners
from proxy.upstream.replay import RecordedGraphQLResponse


def response(body: Any) -> RecordedGraphQLResponse:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return RecordedGraphQLResponse("supMultiMatch", '{"queries":[]}', "query a { b }", 200, text)


def test_owner_is_seller_and_sku_as_far_as_they_are_selected() -> None:
    acme = {"company": {"id": "1", "name": "Acme"}, "offers": [{"sku": "A-1", "clickUrl": "a"}, {"clickUrl": "b"}]}
    anyone = {"company": {"homepageUrl": None}, "offers": [{"sku": "A-1", "clickUrl": "c"}, {"sku": "A-2"}]}
    parts = [{"sellers": [acme]}, {"sellers": [anyone, {"company": None, "offers": [{"clickUrl": "d"}]}]}]
    assert click_link_owners([response({"data": {"supMultiMatch": [{"parts": parts}]}})]) == {
        "a": {("1", "A-1"), ("1", ""), ("Acme", "A-1"), ("Acme", ""), ("", "A-1"), ("", "")},
        "b": {("1", ""), ("Acme", ""), ("", "")},
        "c": {("", "A-1"), ("", "")},
    }


def test_link_has_the_owners_of_all_responses() -> None:
    bodies = [{"company": {"id": number}, "offers": [{"clickUrl": "a"}]} for number in ("1", "2")]
    found = click_link_owners([response(bodies[0]), response(b"<html>"), response(b"\xff"), response(bodies[1])])
    assert found == {"a": {("1", ""), ("2", ""), ("", "")}}
