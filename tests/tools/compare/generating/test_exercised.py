"""Tests of what a run exercised: a refused request exercises nothing, a field without a value neither."""

import json
from typing import Any

from support.comparison_server import request_from_target

from proxy.tools.compare.generating.exercised import Exercised
from proxy.tools.compare.judging import v3_fields
from proxy.traffic.v3_response import SideResponse
from proxy.v3 import endpoints

OFFER = {"sku": "296-1", "moq": None, "seller": {"uid": "x", "name": "Arrow"}}
ITEMS = [{"__class__": "Part", "mpn": "X1", "offers": [OFFER], "specs": {"resistance": {"value": ["1"]}}}]
MATCH = '/v3/parts/match?queries=[{"mpn":"X1","limit":1}]&include=specs&slice[offers]=:1'


def never(*exchanges: tuple[str, int, Any]) -> dict[str, list[str]]:
    """Return what was never exercised, by its title."""
    exercised = Exercised(v3_fields.load())
    for target, status, body in exchanges:
        exercised.add(request_from_target(target), SideResponse(status, json.dumps(body).encode(), 0.1))
    notes = (note.removeprefix("never exercised, ").partition(": ") for note in exercised.never())
    return {title: names.split(", ") for title, _, names in notes}


def test_nothing_is_exercised_before_the_first_request() -> None:
    missing = never()
    assert missing["endpoints"] == [each.path for each in endpoints.ENDPOINTS if each.alias_of is None]
    assert not any(title.startswith("parameters") for title in missing)  # those of no endpoint that is named already


def test_served_request_exercises_its_parameters_and_the_fields_with_a_value() -> None:
    missing = never((MATCH, 200, {"results": [{"items": ITEMS}]}))
    assert "/parts/match" not in missing["endpoints"]
    unused = missing["parameters of /parts/match"]
    assert not {"queries", "include[]", "slice[<field>]", "queries[].mpn", "queries[].limit"} & set(unused)
    assert {"exact_only", "show[]", "queries[].sku"} <= set(unused)
    [fields] = (names for title, names in missing.items() if title.startswith("fields"))
    assert not {"Part.mpn", "PartOffer.sku", "Seller.name", "SpecValue.value"} & set(fields)
    assert {"PartOffer.moq", "Part.descriptions", "Category.name"} <= set(fields)


def test_refused_requests_exercise_nothing() -> None:
    error = {"__class__": "ClientErrorResponse", "message": "no"}
    assert never((MATCH, 400, error), (f"{MATCH}&suppress_status_codes=1", 200, error)) == never()


def test_elements_of_get_multi_are_objects_by_uid() -> None:
    missing = never(("/v3/parts/get_multi?uid[]=x", 200, {"x": ITEMS[0]}))
    [fields] = (names for title, names in missing.items() if title.startswith("fields"))
    assert "PartOffer.sku" not in fields
    assert "uids[]" in missing["parameters of /parts/get_multi"]
