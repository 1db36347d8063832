"""Tests of the cause of a difference, derived from the list of v3 fields and the kind of the difference."""

from typing import Any

import pytest

from proxy.tools.compare.judging import v3_fields
from proxy.tools.compare.judging.findings import CAUSES, Difference

MATCH, SEARCH, ONE, SEVERAL = "/parts/match", "/parts/search", "/parts/{uid}", "/parts/get_multi"


@pytest.mark.parametrize(
    "endpoint, path, field, rest",
    [
        (MATCH, "results[*].items[*].offers[*].seller.has_ecommerce", "Seller.has_ecommerce", ()),
        (MATCH, "results[*].items[*].mpn", "Part.mpn", ()),
        (SEARCH, "results[*].item.offers[*].prices.USD[*]", "PartOffer.prices", ("USD", "[*]")),
        (SEARCH, "results[*].item.specs.resistance.metadata.unit.name", "UnitOfMeasurement.name", ()),
        (SEARCH, "results[*].item.specs.resistance", "Part.specs", ("resistance",)),
        (SEARCH, 'results[*].item.specs["a.b"].value[*]', "SpecValue.value", ("[*]",)),
        (ONE, "offers[*]", "Part.offers", ("[*]",)),
        (ONE, "specs.resistance.attribution.sources[*]", "SpecValue.attribution", ("sources", "[*]")),
        (SEVERAL, "[*].brand.name", "Brand.name", ()),
        ("/sellers/search", "results[*].item.has_ecommerce", "Seller.has_ecommerce", ()),
        ("/categories/{uid}", "ancestor_uids[*]", "Category.ancestor_uids", ("[*]",)),
        ("/brands/get_multi", "[*].homepage_url", "Brand.homepage_url", ()),
    ],
)
def test_field_of_a_path_is_found_through_the_list(
    causes: Any, endpoint: Any, path: str, field: str, rest: Any
) -> None:
    found = causes.field(endpoint, path)
    assert (f"{found.row.object}.{found.row.field}", found.rest) == (field, rest)


@pytest.mark.parametrize(
    "endpoint, path",
    [
        (MATCH, "msec"),
        (MATCH, "results[*].hits"),
        (MATCH, "results[*].items[*]"),
        (MATCH, "results[*].items[*].nonsense"),
        (SEARCH, "facet_results.fields.mpn.missing"),
        (ONE, "(status)"),
        (ONE, ""),
        ("/nowhere", "mpn"),
    ],
)
def test_envelope_paths_have_no_field(causes: Any, endpoint: Any, path: str) -> None:
    assert causes.field(endpoint, path) is None


def test_every_listed_field_is_reachable_from_an_endpoint(causes: Any) -> None:
    """No object of the list is out of reach."""
    objects, found = v3_fields.load(), set()

    def walk(name: Any, path: Any, endpoint: Any, depth: Any) -> None:
        for field, entry in objects[name].items():
            at = f"{path}.{field}".lstrip(".")
            row = causes.field(endpoint, at).row
            assert (row.object, row.field) == (name, field)
            found.add((name, field))
            below = at + ("[*]" if entry.each else ".some_key" if entry.keyed else "")
            if entry.target and depth:
                walk(entry.target, below, endpoint, depth - 1)

    walk("Part", "", ONE, 6)
    walk("Category", "[*]", "/categories/get_multi", 6)
    assert found == {(row.object, row.field) for row in causes.rows()}


@pytest.mark.parametrize(
    "difference, cause",
    [
        (Difference("status", "(status)", "(status)", 200, 404), "status"),
        (Difference("latency", "(latency)", "(latency)", 0.1, 3.0), "latency"),
        (Difference("unreadable", "(body)", "(body)", "JSON", "HTML instead of JSON"), "unexplained"),
        (Difference("type", "results[*].items[*].offers[*].seller.has_ecommerce", "", True, None), "no source"),
        (Difference("value", "results[*].items[*].offers[*].seller.has_ecommerce", "", True, False), "unexplained"),
        (Difference("missing", "results[*].items[*].offers[*].seller.has_ecommerce", "", True), "unexplained"),
        (Difference("value", "results[*].items[*].offers[*].is_realtime", "", True, False), "no source"),
        (Difference("value", "results[*].items[*].offers[*].is_realtime", "", False, True), "unexplained"),
        (Difference("missing", "results[*].items[*].specs.x.attribution.sources[*]", "", {"uid": "1"}), "no source"),
        (Difference("missing", "results[*].items[*].offers[*]._custom.tag", "", 1), "no source"),
        (Difference("value", "results[*].items[*].brand.uid", "", "1", "2"), "derived"),
        (Difference("value", "results[*].items[*].brand.name", "", "A", "B"), "derived"),
        (Difference("value", "results[*].items[*].manufacturer.name", "", "A", "B"), "unexplained"),
        (Difference("order", "results[*].items[*].category_uids", "", ["1"], ["2"]), "order"),
        (Difference("format", "results[*].items[*].brand.uid", "", "1.0", "1"), "format"),
        (Difference("missing", "results[*].items[*]", "", {}), "missing part"),
        (Difference("missing", "results[*].items[*].offers[*]", "", {}), "unexplained"),
        (Difference("value", "results[*].hits", "", 1, 2), "extra part"),
        (Difference("value", "results[*].hits", "", 3, 2), "missing part"),
        (Difference("type", "results[*].hits", "", 3, "2"), "unexplained"),
        (Difference("value", "request.limit", "", 3, 2), "unexplained"),
    ],
)
def test_difference_has_its_cause(causes: Any, difference: Any, cause: str) -> None:
    assert causes.of(MATCH, difference) == cause
    assert cause in CAUSES


@pytest.mark.parametrize(
    "endpoint, path, cause",
    [
        (SEARCH, "results[*]", "extra part"),
        (SEARCH, "results[*].item", "extra part"),
        (SEVERAL, "[*]", "extra part"),
        ("/brands/get_multi", "[*]", "unexplained"),
        (MATCH, "results[*]", "unexplained"),
    ],
)
def test_part_paths_are_recognized_in_every_endpoint(causes: Any, endpoint: Any, path: str, cause: str) -> None:
    assert causes.of(endpoint, Difference("extra", path, path, candidate={})) == cause


def test_difference_between_two_errors_is_the_shape_of_errors(causes: Any) -> None:
    assert causes.of(MATCH, Difference("value", "message", "message", "a", "b"), refused=True) == "error shape"
    assert causes.of(MATCH, Difference("status", "(status)", "(status)", 403, 400), refused=True) == "status"


@pytest.mark.parametrize(
    "path, kind, cause, words",
    [
        (
            "results[*].items[*].offers[*].seller.has_ecommerce",
            "type",
            "no source",
            "Seller.has_ecommerce (no source): the service does not say whether a seller sells online",
        ),
        ("results[*].items[*].brand.name", "value", "derived", "Part.brand (derived): the service knows makers only"),
        ("results[*].items[*].mpn", "value", "unexplained", "Part.mpn is read from SupPart.mpn"),
        ("results[*].items[*].specs", "missing", "unexplained", "and is empty where the plan lacks TECH_SPECS"),
        ("msec", "value", "unexplained", "the field stands around v3's objects"),
        ("(body)", "unreadable", "unexplained", "one side's body is no JSON"),
        ("results[*].items[*].mpn", "value", "moved", "the data has moved"),
    ],
)
def test_cause_is_explained_in_a_sentence(causes: Any, path: str, kind: str, cause: str, words: str) -> None:
    assert words in causes.why(MATCH, path, kind, cause)


def test_every_cause_has_an_explanation(causes: Any) -> None:
    assert all(causes.why(MATCH, "results[*].items[*].mpn", "value", cause) for cause in CAUSES)


@pytest.mark.parametrize(
    "endpoint, baseline, candidate, cause",
    [
        (ONE, 200, 404, "missing part"),
        (ONE, 404, 200, "extra part"),
        (ONE, 200, 503, "status"),
        ("/brands/{uid}", 200, 404, "status"),
    ],
)
def test_part_unknown_to_one_side_is_missing_or_extra(
    causes: Any, endpoint: Any, baseline: int, candidate: int, cause: str
) -> None:
    assert causes.of(endpoint, Difference("status", "(status)", "(status)", baseline, candidate)) == cause
