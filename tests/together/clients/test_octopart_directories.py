"""octopart 0.0.24, brands, sellers and categories: by uid and by name, through its typed models."""

from typing import Any

import octopart
import pytest
from octopart.client import OctopartClient
from octopart.exceptions import OctopartError
from together.clients import services

pytestmark = [
    services.both,
    pytest.mark.filterwarnings("ignore::schematics.deprecated.SchematicsDeprecationWarning"),
    pytest.mark.usefixtures("octopart_defaults"),
]

# Uids of recorded v3 answers.
TEXAS, NEWARK, DIGIKEY = "2239e3330e2df5fe", "d294179ef2900153", "2c3be9310496fffc"
ROOT, RESISTORS = "8a1e4714bb3951d9", "5c6a91606d4187ad"


def test_a_brand_is_found_by_its_uid() -> None:
    brand = octopart.get_brand(TEXAS)
    assert (brand.uid, brand.name, brand.homepage_url) == (TEXAS, "Texas Instruments", "http://ti.com")


def test_brands_are_found_by_name_with_acquired_brands() -> None:
    names = [brand.name for brand in octopart.search_brand("texas")]
    assert names[0] == "Texas Instruments"
    assert {"TAOS", "Klixon", "Burr Brown"} < set(names)


def test_a_found_brand_can_be_got_by_its_uid() -> None:
    brands = octopart.search_brand("burr brown", sortby=[("score", "desc")])
    assert brands[0].name == "Burr Brown"
    assert [octopart.get_brand(brand.uid).name for brand in brands] == [brand.name for brand in brands]


def test_an_unknown_brand_is_no_brand() -> None:
    assert octopart.search_brand("nosuchname") == []


def test_a_seller_is_found_by_its_uid() -> None:
    seller = octopart.get_seller(DIGIKEY)
    seller.validate()
    assert (seller.uid, seller.name, seller.display_flag) == (DIGIKEY, "Digi-Key", "US")
    assert seller.homepage_url.startswith("http")


@pytest.mark.parametrize("query", ["newark", "*newark*", "NEWARK"])
def test_sellers_are_found_by_name_with_and_without_stars(query: str) -> None:
    assert [(seller.uid, seller.name) for seller in octopart.search_seller(query)] == [(NEWARK, "Newark")]


def test_lists_are_paged_in_the_requested_order() -> None:
    order = [("name", "asc")]
    pages = [octopart.search_seller("", start=start, limit=50, sortby=order) for start in (0, 50)]
    sellers = [seller for page in pages for seller in page]
    for seller in sellers:
        seller.validate()
    names = [seller.name.lower() for seller in sellers]
    assert len({seller.uid for seller in sellers}) == 100
    assert names == sorted(names)


def test_the_root_category_has_no_parent_and_contains_every_part() -> None:
    root = octopart.get_category(ROOT)
    root.validate()
    assert (root.name, root.parent_uid, root.ancestor_uids, root.ancestor_names) == ("Electronic Parts", None, [], [])
    children = [octopart.get_category(uid) for uid in root.children_uids]
    assert {child.parent_uid for child in children} == {ROOT}
    assert root.num_parts >= sum(child.num_parts for child in children) > 300


def test_categories_are_found_by_name_with_all_their_ancestors() -> None:
    best, *others = octopart.search_category("resistors", sortby=[("score", "desc")])
    assert (best.uid, best.name) == (RESISTORS, "Resistors")
    assert best.ancestor_names == ["Electronic Parts", "Passive Components"]
    assert best.ancestor_uids == [ROOT, best.parent_uid]
    assert {other.uid for other in others} & set(best.children_uids)
    for category in (best, *others):
        category.validate()
        assert len(category.ancestor_uids) == len(category.ancestor_names)
        assert "resistors" in category.name.lower()


def test_included_category_imagesets_are_a_list(octopart_client: OctopartClient) -> None:
    plain, included = (
        octopart_client.search_category("resistors", include_imagesets=flag)["results"][0]["item"]
        for flag in (False, True)
    )
    assert included == {**plain, "imagesets": included["imagesets"]}
    assert isinstance(included["imagesets"], list)


def test_a_directory_response_has_the_shape_of_a_search(octopart_client: OctopartClient) -> None:
    reply = octopart_client.search_brand("texas", limit=1)
    assert (reply["__class__"], len(reply["results"]), reply["results"][0]["snippet"]) == ("SearchResponse", 1, None)
    assert reply["hits"] > 1
    assert (reply["request"]["q"], reply["request"]["limit"]) == ("texas", 1)
    assert "user_country" not in reply


@pytest.mark.usefixtures("octopart_hurries")
@pytest.mark.parametrize("get", [octopart.get_brand, octopart.get_seller, octopart.get_category])
def test_an_unknown_uid_gets_404(get: Any) -> None:
    with pytest.raises(OctopartError, match="HTTPError 404"):
        get("0123456789abcdef")
