"""Tests of uid tables learned from responses: new uids, known uids and conflicts."""

from typing import Any

import pytest

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.mapping.uids import KnownUid
from proxy.tools.compare.uid_learning import LearnedUids, learned_uids

KNOWN = loader.load_uids(shipped.path("mappings"))
A, B, C, D = (digit * 16 for digit in "1234")


def obj(kind: str, uid: str, name: str, **more: Any) -> dict[str, Any]:
    return {"__class__": kind, "uid": uid, "name": name, **more}


def part(uid: str, brand: Any, *offers: Any) -> dict[str, Any]:
    return {"__class__": "Part", "uid": uid, "mpn": uid, "brand": brand, "category_uids": [C], "offers": list(offers)}


def offer(sku: str, seller: Any) -> dict[str, Any]:
    return {"sku": sku, "seller": seller}


def lines(found: LearnedUids) -> dict[str, set[tuple[str, str, str | None]]]:
    return {kind: {(each.uid, each.name, each.id) for each in entries} for kind, entries in found.lines.items()}


def test_sources_share_uids_and_are_matched_by_name() -> None:
    baseline = [{"attribution": {"sources": [obj("Source", A, name)]}} for name in ("One", "Two")]
    assert lines(learned_uids([baseline], KNOWN)) == {"Source": {(A, "One", None), (A, "Two", None)}}
    assert lines(learned_uids([{"sources": [obj("Source", A, "")]}], KNOWN)) == {}


@pytest.mark.parametrize(
    "seller, known",
    [
        (obj("Seller", "fbaa3ea0de71286d", "RS Components", id="3261"), True),
        (obj("Seller", "029cc79618fcd15b", "Freelance Electronics", id="3917"), False),  # an older one than is sent
    ],
)
def test_uids_sent_already_are_known(seller: dict[str, Any], known: bool) -> None:
    found = learned_uids([seller], KNOWN)
    assert (found.known, len(found.lines)) == ((1, 0) if known else (0, 1))


@pytest.mark.parametrize(
    "first, second, words",
    [
        (obj("Brand", A, "Yageo"), obj("Brand", B, "YAGEO"), f"Brand yageo has the uids {A}, {B}"),
        (obj("Seller", A, "Zoro", id="1"), obj("Seller", A, "Zoro", id="2"), f"Seller uid {A} is of the ids 1, 2"),
        (obj("Seller", A, "x", id="7"), obj("Seller", B, "y", id="7"), f"Seller 7 has the uids {A}, {B}"),
    ],
)
def test_conflicts_are_reported_and_not_learned(first: dict[str, Any], second: dict[str, Any], words: str) -> None:
    found = learned_uids([first, second, obj("Brand", C, "Panjit")], KNOWN)
    assert words in found.conflicts
    assert lines(found) == {"Brand": {(C, "Panjit", None)}}


def test_learned_line_is_valid_in_a_table() -> None:
    (line,) = learned_uids([obj("Brand", A, "Yageo")], KNOWN).lines["Brand"]
    assert line == KnownUid(A, "Yageo", None, (), source="learnt")
    assert line.mistake() is None


@pytest.mark.parametrize("value", [None, 7, [], "x", {"__class__": "Brand", "uid": "no uid", "name": "x"}, {"uid": A}])
def test_responses_without_objects_teach_nothing(value: Any) -> None:
    assert learned_uids([value], KNOWN) == LearnedUids({}, 0, [])


def test_categories_teach_ancestor_names_and_bare_uids_nothing() -> None:
    body = obj("Category", A, "Diodes (all)", ancestor_uids=[B, C], ancestor_names=["One", "Two"], children_uids=[D])
    assert lines(learned_uids([body], KNOWN)) == {
        "Category": {(A, "Diodes (all)", None), (B, "One", None), (C, "Two", None)},
    }
