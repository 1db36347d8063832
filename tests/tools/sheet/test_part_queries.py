"""Tests of the queries of spreadsheets: those of the core that they become, and what is read of its answers."""

from typing import Any

import msgspec
import pytest

from proxy import config
from proxy.gateway.core import Answer
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.model import Projection
from proxy.planning import queries
from proxy.planning.projection_cache import ProjectionCache
from proxy.store.protocol import Hit, Result
from proxy.tools.sheet.part_queries import SIMILAR, VIEW, PartQueries
from proxy.tools.sheet.parts import Offer, Part, PartQuery, PartSpec, Price, SimilarPart

ALL = frozenset(config.FEATURES)
PROJECTIONS = ProjectionCache(loader.load(shipped.path("mappings")))
OFFER = dict.fromkeys(("factoryLeadDays", "moq", "orderMultiple", "packaging"))
BODY = {
    "bestImage": None,
    "shortDescription": "a part",
    "octopartUrl": "https://octopart.com/a",
    "mpn": "A",
    "manufacturer": {"name": "TI"},
    "sellers": [
        {
            "isBroker": is_broker,
            "isAuthorized": not is_broker,
            "company": {"id": "1", "name": name},
            "offers": [
                {
                    **OFFER,
                    "clickUrl": "",
                    "inventoryLevel": 3,
                    "sku": "1",
                    "updated": "2026-01-01T00:00:00Z",
                    "prices": [],
                }
            ],
        }
        for name, is_broker in (("Digi-Key", False), ("a broker", True))
    ],
}


def asked(query: PartQuery, country: str = "US", features: frozenset[str] = ALL) -> queries.Query:
    return PartQueries(PROJECTIONS, features).query(query, country)


def test_part_is_the_beginning_of_the_list_that_other_dialects_ask_for() -> None:
    assert asked(PartQuery("a", "TI")) == queries.matching(0, 1, mpn="A", manufacturer="TI")
    assert asked(PartQuery("", sku="296-1")) == queries.matching(0, 1, sku="296-1")
    assert asked(PartQuery("A", sources=True)) == queries.matching(0, 5, mpn="A")


def test_similar_parts_are_an_operation_of_its_own_where_the_application_has_them() -> None:
    query = PartQuery("A", sources=True, similar=True)
    variants = [query, query._replace(mpn="B"), query._replace(currency="EUR")]
    keys = {asked(each).key for each in variants} | {asked(query, "DE").key}
    assert len(keys) == 4
    passed_on = asked(query).passed_on
    assert passed_on is not None
    sent = msgspec.json.decode(passed_on.operation.payload)
    assert sent["variables"]["queries"] == [{"mpn": "A", "start": 0, "limit": 5}]
    assert (passed_on.operation.parts_max, "similarParts" in sent["query"]) == (5, True)
    assert asked(query, features=ALL - {"SIMILAR_PARTS"}) == queries.matching(0, 5, mpn="A")


def test_hundred_parts_are_one_operation_and_similar_parts_one_for_each_number() -> None:
    lines = [PartQuery(f"A{n}") for n in range(150)]
    both = [PartQuery(f"A{n}", sources=True, similar=similar) for n in range(30) for similar in (False, True)]
    made = PartQueries(PROJECTIONS, ALL)
    assert (made.operations(lines, "US"), made.operations(both, "US"), made.operations([], "US")) == (2, 2 + 30, 0)


def result(query: PartQuery, *bodies: bytes) -> Any:
    found = Result("key", 5, 7, (Hit("1"),) * len(bodies), bodies, fetched=10.0)
    return PartQueries(PROJECTIONS, ALL).result(query, Answer(found), "US", 20.0)


def test_part_has_offers_of_distributors_without_brokers() -> None:
    found = result(PartQuery("A"), msgspec.json.encode(BODY))
    assert (found.hits, found.error, found.fetched) == (7, None, 10.0)
    assert [(offer.seller, offer.authorized) for offer in found.part.offers] == [("Digi-Key", True)]


@pytest.mark.parametrize("body", [b"null", b'{"mpn": 1}', b"\xff"])
def test_part_that_cannot_be_read_is_the_error_of_its_line(body: bytes) -> None:
    found = result(PartQuery("A"), body)
    assert (found.part, found.hits) == (None, 7)
    assert "cannot be read" in found.error


def test_manufacturers_of_a_number_are_those_of_its_parts() -> None:
    other = BODY | {"manufacturer": {"name": "ST"}}
    found = result(PartQuery("A", sources=True), *map(msgspec.json.encode, (BODY, other)))
    assert [each.manufacturer for each in found.sources] == ["TI", "ST"]


def test_whole_parts_have_all_fields_but_similar_parts() -> None:
    features = ALL - SIMILAR.features
    assert PROJECTIONS.part(Projection(features=features, view=VIEW)).fields <= PROJECTIONS.whole(features).fields


@pytest.mark.parametrize(
    "record, object_, more",
    [
        (Part, "SheetPart", {"similar"}),
        (PartSpec, "SheetSpec", set()),
        (Offer, "SheetOffer", set()),
        (Price, "SheetPrice", set()),
        (SimilarPart, "SheetSimilarPart", set()),
    ],
)
def test_records_have_exactly_the_fields_of_the_mapping(record: Any, object_: str, more: set[str]) -> None:
    rules = loader.load(shipped.path("mappings")).views[VIEW].rules
    assert {field.name for field in msgspec.structs.fields(record)} | more == set(rules[object_].fields)
