"""Tests of generated requests: reproducible, of all endpoints and parameters of the description, mostly valid."""

from collections import Counter
from typing import Any

import pytest

from proxy import errors
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.tools.compare.generating.exercised import Exercised
from proxy.tools.compare.generating.grammar import RequestGenerator
from proxy.tools.compare.judging import v3_fields
from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse
from proxy.v3 import endpoints
from proxy.v3.parameters import Parameters
from proxy.v3.parsing import requests

BRAND = {"__class__": "Brand", "uid": "2239e3330e2df5fe", "name": "Texas Instruments", "homepage_url": None}
SELLER = {"__class__": "Seller", "uid": "2c3be9310496fffc", "name": "Arrow", "id": "1106", "has_ecommerce": True}
CONTENTS: dict[str, list[dict[str, Any]]] = {
    "Part": [
        {
            "uid": f"bd4d768f82c5628{n}",
            "mpn": f"SN74S{n}-X",
            "brand": BRAND,
            "offers": [{"sku": f"296-{n}", "seller": SELLER}],
            "specs": {"resistance": {"value": ["10.5"]}},
            "category_uids": ["8a1e4714bb3951d9"],
        }
        for n in range(5)
    ],
    "Brand": [BRAND],
    "Seller": [SELLER],
    "Category": [{"uid": "8a1e4714bb3951d9", "name": "Semiconductors", "num_parts": 7}],
}
SITE, CLIENT, REQUESTS = "octopart", "no key", 3_000


@pytest.fixture(scope="module")
def generated() -> list[V3Request]:
    return generator(1).requests(REQUESTS)


def generator(seed: int, contents: Any = None) -> RequestGenerator:
    mappings = loader.load(shipped.path("mappings"), SITE)
    return RequestGenerator(contents or CONTENTS, mappings, SITE, CLIENT, seed)


def test_seed_determines_the_requests(generated: list[V3Request]) -> None:
    assert generator(1).requests(50) == generated[:50]
    assert generator(2).requests(50) != generated[:50]
    assert len({request.id for request in generated}) == REQUESTS
    assert {request.client for request in generated} == {CLIENT}


def test_every_endpoint_and_every_parameter_of_the_description_is_exercised(generated: list[V3Request]) -> None:
    exercised = Exercised(v3_fields.load(SITE))
    for request in generated:
        exercised.add(request, SideResponse(200, b"{}", 0.1))
    assert [note for note in exercised.never() if "fields" not in note.partition(":")[0]] == []
    assert {endpoints.of(request.path) for request in generated} == set(endpoints.ENDPOINTS)


def test_most_requests_are_valid(generated: list[V3Request]) -> None:
    refused = Counter(_is_refused(request) for request in generated if request.path == "/parts/match")
    assert 0 < refused[True] < refused[False] / 10
    priced = [estimate.worst_case_parts(request) for request in generated]
    assert sum(map(bool, priced)) > REQUESTS / 3


def _is_refused(request: V3Request) -> bool:
    try:
        return any(query.error for query in requests.parse_match(Parameters.of(request.query)).request.queries)
    except errors.BadRequest:
        return True


def test_few_objects_make_as_many_requests_as_there_are() -> None:
    one = {**CONTENTS, "Brand": [], "Category": [], "Seller": []}
    made = generator(1, one).requests(20)
    assert {request.path.split("/")[1] for request in made} == {"parts"}
    assert len(made) == 20
