"""Tests of uid tables learned from responses: new uids, known uids and conflicts."""

from typing import Any

import pytest

from proxy.kit import shipped
from proxy.mapping import loader
from proxy.tools.compare.uid_learning import LearnedUids, learned_uids

KNOWN = loader.load_uids(shipped("mappings"))
A, B, C, D = (digit * 16 for digit in "1234")


def obj(kind: str, uid: str, name: str, **more: Any) -> dict[str, Any]:
    return {"__class__": kind, "uid": uid, "name": name, **more}


def lines(found: LearnedUids) -> dict[str, set[tuple[str, str, str | None]]]:
    return {kind: {(each.uid, each.name, each.id) for each in entries} for kind, entries in found.lines.items()}


def test_sources_share_uids_and_are_matched_by_name() -> None:
    baseline = [{"attribution": {"sources": [obj("Source", A, name)]}} for name in ("One", "Two")]
    assert lines(learned_uids([baseline], KNOWN)) == {"Source": {(A, "One", None), (A, "Two", None)}}
    assert lines(learned_uids([{"sources": [obj("Source", A, "")]}], KNOWN)) == {}


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


@pytest.mark.parametrize("value", [None, 7, [], "x", {"__class__": "Brand", "uid": "no uid", "name": "x"}, {"uid": A}])
def test_responses_without_objects_teach_nothing(value: Any) -> None:
    assert learned_uids([value], KNOWN) == LearnedUids({}, 0, [])


def test_categories_teach_ancestor_names_and_bare_uids_nothing() -> None:
    body = obj("Category", A, "Diodes (all)", ancestor_uids=[B, C], ancestor_names=["One", "Two"], children_uids=[D])
    assert lines(learned_uids([body], KNOWN)) == {
        "Category": {(A, "Diodes (all)", None), (B, "One", None), (C, "Two", None)},
    }
