"""Tests of --fail-on: accepted thresholds, and when they fail."""

import pytest
from support import cases

from proxy.tools.compare.judging import thresholds
from proxy.tools.compare.judging.thresholds import Threshold


@cases.parametrize("text, name, share")
def test_threshold_is_a_name_with_an_optional_share(text: str, name: str, share: float) -> None:
    found = thresholds.parse(text)
    assert found.name == name
    assert found.share == pytest.approx(share)


@pytest.mark.parametrize("text", ["price>1", "price>", "price>101%", "price>-1%", "price>1%%", "price>x%"])
def test_invalid_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has no share such as 1% after its >"):
        thresholds.parse(text)


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'misssing-part' is not the name") as caught:
        thresholds.parse("misssing-part")
    assert "did you mean missing-part? There are part, brand" in str(caught.value)


@pytest.mark.parametrize("text", ["", "moved", "missing-", "-part", "part-missing", "part>1%>2%"])
def test_invalid_threshold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not the name|has no share"):
        thresholds.parse(text)


def test_thresholds_are_separated_by_commas() -> None:
    assert [each.name for each in thresholds.parse_list("missing-part, price>1%,")] == ["missing-part", "price"]


@pytest.mark.parametrize(
    "name, is_about",
    [("part", True), ("missing", True), ("missing-part", True), ("extra-part", False), ("offer", False)],
)
def test_threshold_selects_kind_subject_or_both(name: str, is_about: bool) -> None:
    threshold = Threshold(name, name)
    found = threshold.is_about("/parts/match", "results[*].items[*]", "missing", "missing part")
    assert found is is_about


def test_threshold_can_select_a_cause() -> None:
    path = "results[*].items[*].offers[*].prices.USD[*]"
    assert Threshold("derived", "derived").is_about("/parts/match", path, "value", "derived")
    assert not Threshold("derived", "derived").is_about("/parts/match", path, "value", "unexplained")


def test_brand_is_no_part() -> None:
    assert thresholds.subject_of("/brands/get_multi", "[*]") == "brand"
    assert thresholds.subject_of("/parts/get_multi", "[*]") == "part"


def test_threshold_without_share_is_exceeded_by_one_request() -> None:
    assert thresholds.parse("price").broken(0, 100) is None
    assert thresholds.parse("price").broken(1, 100) == "price: 1 of 100 requests have it (1.00%)"


def test_threshold_with_share_is_exceeded_above_it() -> None:
    assert thresholds.parse("price>1%").broken(1, 100) is None
    assert thresholds.parse("price>1%").broken(2, 100) == "price>1%: 2 of 100 requests have it (2.00%)"
