"""Tests of uid tables learned from responses: new uids, known uids and conflicts."""

from typing import Any

import pytest

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.mapping.uids import KnownUid
from proxy.tools.compare.uid_learning import LearnedUids, UidLearner

KNOWN = loader.load_uids(shipped.path("mappings"))
A, B, C, D = (digit * 16 for digit in "1234")


def obj(kind: str, uid: str, name: str, **more: Any) -> dict[str, Any]:
    return {"__class__": kind, "uid": uid, "name": name, **more}


def part(uid: str, brand: Any, *offers: Any) -> dict[str, Any]:
    return {"__class__": "Part", "uid": uid, "mpn": uid, "brand": brand, "category_uids": [C], "offers": list(offers)}


def offer(sku: str, seller: Any) -> dict[str, Any]:
    return {"sku": sku, "seller": seller}


def learnt(*pairs: tuple[Any, Any], both: bool = True) -> LearnedUids:
    learner = UidLearner(KNOWN)
    for baseline, candidate in pairs:
        learner.take(baseline, candidate)
    return learner.learnt(both=both)


def lines(found: LearnedUids) -> dict[str, set[tuple[str, str, str | None]]]:
    return {kind: {(each.uid, each.name, each.id) for each in entries} for kind, entries in found.lines.items()}


def counts(found: LearnedUids) -> tuple[int, int, int, int]:
    return found.learnt, found.known, len(found.conflicts), found.unmatched


def test_objects_at_equal_places_are_paired_with_the_upstream_id() -> None:
    baseline = {
        "results": [{"items": [part("b" * 16, obj("Brand", A, "Yageo")), part("a" * 16, obj("Brand", B, "Panjit"))]}]
    }
    candidate = {
        "results": [
            {
                "items": [
                    part("a" * 16, obj("Brand", "b4a2d0000000067b", "Panjit")),
                    part("b" * 16, obj("Brand", "b4a2d0000000026d", "Yageo")),
                ]
            }
        ]
    }
    found = learnt((baseline, candidate))
    assert lines(found) == {"Brand": {(A, "Yageo", "621"), (B, "Panjit", "1659")}}
    assert counts(found) == (2, 0, 0, 0)


def test_seller_of_an_offer_is_matched_by_id() -> None:
    baseline = part("a" * 16, None, offer("X", obj("Seller", A, "Zoro Tools", id="8284")))
    candidate = part("a" * 16, None, offer("X", obj("Seller", "5e11e4000000205c", "Zoro", id="8284")))
    assert lines(learnt((baseline, candidate))) == {"Seller": {(A, "Zoro Tools", "8284")}}


def test_categories_teach_ancestor_names_and_bare_uids_nothing() -> None:
    baseline = obj(
        "Category", A, "Diodes (all)", ancestor_uids=[B, C], ancestor_names=["One", "Two"], children_uids=[D]
    )
    above = ["ca7e600000000005", "ca7e600000000006"]
    candidate = {**baseline, "uid": "ca7e600000000007", "ancestor_uids": above, "children_uids": ["ca7e600000000008"]}
    assert lines(learnt((baseline, candidate))) == {
        "Category": {(A, "Diodes (all)", "7"), (B, "One", "5"), (C, "Two", "6")},
    }


def test_sources_share_uids_and_are_matched_by_name() -> None:
    baseline = [{"attribution": {"sources": [obj("Source", A, name)]}} for name in ("One", "Two")]
    assert lines(learnt((baseline, None), both=False)) == {"Source": {(A, "One", None), (A, "Two", None)}}
    assert counts(learnt(([{"sources": [obj("Source", A, "")]}], None), both=False)) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "seller, known",
    [
        (obj("Seller", "fbaa3ea0de71286d", "RS Components", id="3261"), True),
        (obj("Seller", "029cc79618fcd15b", "Freelance Electronics", id="3917"), False),  # an older one than is sent
    ],
)
def test_uids_sent_already_are_known(seller: dict[str, Any], known: bool) -> None:
    found = learnt((seller, None), both=False)
    assert (found.known, found.learnt) == ((1, 0) if known else (0, 1))


@pytest.mark.parametrize(
    "first, second, words",
    [
        (obj("Brand", A, "Yageo"), obj("Brand", B, "YAGEO"), f"Brand yageo has the uids {A}, {B}"),
        (obj("Seller", A, "Zoro", id="1"), obj("Seller", A, "Zoro", id="2"), f"Seller uid {A} is of the ids 1, 2"),
        (obj("Seller", A, "x", id="7"), obj("Seller", B, "y", id="7"), f"Seller 7 has the uids {A}, {B}"),
    ],
)
def test_conflicts_are_reported_and_not_learned(first: dict[str, Any], second: dict[str, Any], words: str) -> None:
    found = learnt((first, None), (second, None), (obj("Brand", C, "Panjit"), None), both=False)
    assert words in found.conflicts
    assert lines(found) == {"Brand": {(C, "Panjit", None)}}


def test_objects_missing_in_the_candidate_are_not_matched() -> None:
    baseline = {A: obj("Brand", A, "Yageo"), B: obj("Brand", B, "Panjit"), C: obj("Brand", C, "ON Semi")}
    candidate = {A: obj("Brand", "b4a2d0000000026d", "Yageo"), C: obj("Brand", "b4a2d00000000117", "onsemi")}
    found = learnt((baseline, candidate))
    assert (lines(found), found.unmatched) == ({"Brand": {(A, "Yageo", "621")}}, 2)


def test_learned_line_is_valid_in_a_table() -> None:
    (line,) = learnt((obj("Brand", A, "Yageo"), None), both=False).lines["Brand"]
    assert line == KnownUid(A, "Yageo", None, (), source="learnt")
    assert line.mistake() is None


@pytest.mark.parametrize("value", [None, 7, [], "x", {"__class__": "Brand", "uid": "no uid", "name": "x"}, {"uid": A}])
def test_responses_without_objects_teach_nothing(value: Any) -> None:
    assert counts(learnt((value, None), (value, value), both=False)) == (0, 0, 0, 0)
