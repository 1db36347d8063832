"""Tests of v4's REST wrapper against the sandbox: parts and envelope as it had them, money and limits as v3's."""

import json
from typing import Any
from urllib.parse import quote

import pytest
import yarl
from support import cases
from support.running_proxy import KEY
from together.environment import ProxyEnvironment, RawResponse, lowercase_names

PATH = "/api/v4/rest/parts/match"
SN74S74N = {"mpn": "SN74S74N"}
# As recorded, in order (contract graphql.md §10).
PART = ["uid", "mpn", "brand", "manufacturer", "octopart_url", "offers"]
WHOLE_PART = [*PART[:4], "specs", *PART[4:], "datasheets", "compliance_documents"]
OFFER = [
    "id", "sku", "factory_lead_days", "factory_order_multiple", "in_stock_quantity", "on_order_quantity",
    "order_multiple", "multipack_quantity", "packaging", "moq", "product_url", "last_updated", "prices", "seller",
    "is_authorized",
]  # fmt: skip


async def fetch(
    environment: ProxyEnvironment, *queries: dict[str, Any], more: str = f"&apikey={KEY}", **headers: str
) -> RawResponse:
    target = f"{PATH}?queries={quote(json.dumps(queries))}{more}"
    url = yarl.URL(environment.proxy.url + target, encoded=True)
    async with environment.proxy.session.get(url, headers=headers) as response:
        return RawResponse(response.status, lowercase_names(response.headers.items()), await response.read())


async def test_part_has_the_recorded_fields_in_their_order(environment: ProxyEnvironment) -> None:
    plain = (await fetch(environment, SN74S74N)).json["results"][0]["items"][0]
    whole = await fetch(environment, SN74S74N, more=f"&apikey={KEY}&include[]=specs&include[]=datasheets")
    part = whole.json["results"][0]["items"][0]
    assert (list(plain), list(part)) == (PART, WHOLE_PART)
    assert b"__class__" not in whole.body
    assert part["brand"] == part["manufacturer"] == {
        "uid": "370", "name": "Texas Instruments", "homepage_url": part["brand"]["homepage_url"],
    }  # fmt: skip
    assert {tuple(offer) for offer in part["offers"]} == {tuple(OFFER)}
    seller = part["offers"][0]["seller"]
    assert (list(seller), seller["uid"]) == (["uid", "id", "name", "homepage_url"], seller["id"])
    (currency, prices), *_ = part["offers"][0]["prices"].items()
    assert (len(currency), isinstance(prices[0][0], int), prices[0][1].partition(".")[2].isdigit()) == (3, True, True)
    status = part["specs"]["lifecyclestatus"]
    assert status["metadata"] == {"name": "Lifecycle Status", "key": "lifecyclestatus"}
    assert [isinstance(value, str) for value in status["value"]] == [True]
    (document, *_) = part["datasheets"]
    assert list(document) == ["attribution", "metadata", "mimetype", "url"]
    assert list(document["metadata"]) == ["date_created", "num_pages"]
    assert [list(source) for source in document["attribution"]["sources"]] == [["name"]]


@pytest.mark.parametrize("more, headers", [(f"&token={KEY}", {}), ("", {"token": KEY}), (f"&apikey={KEY}", {})])
async def test_token_is_accepted_wherever_v4_clients_send_it(
    environment: ProxyEnvironment, more: str, headers: dict[str, str]
) -> None:
    response = await fetch(environment, SN74S74N, more=more, **headers)
    assert (response.status, response.json["results"][0]["hits"]) == (200, 4)


async def test_token_of_a_header_shares_no_response_with_a_wrong_one(start: Any) -> None:
    async with start() as environment:
        for _ in range(3):  # the third time, the encoded response comes from its cache
            assert (await fetch(environment, SN74S74N, more="", token=KEY)).status == 200
        refused = await fetch(environment, SN74S74N, more="", token="another-key")
        assert (refused.status, (await fetch(environment, SN74S74N, more="")).status) == (403, 400)


@pytest.mark.parametrize(
    "queries, says",
    [
        ("[", "queries is not valid JSON"),
        ("", "queries argument missing"),
        ("[{}]&include[]=" + "x&include[]=" * 300, "at most"),
    ],
)
async def test_bad_parameters_get_the_errors_of_v3(environment: ProxyEnvironment, queries: str, says: str) -> None:
    response = await environment.get(f"{PATH}?token={KEY}&queries={quote(queries, safe='&=')}")
    assert (response.status, list(response.json)) == (400, ["message"])
    assert says in response.json["message"]


async def test_error_of_a_query_is_its_own(environment: ProxyEnvironment) -> None:
    body = (await fetch(environment, {"reference": 1}, SN74S74N)).json
    assert [(result["reference"], result["error"]) for result in body["results"]] == [
        (1, "Missing search filters"),
        (None, None),
    ]


@cases.parametrize("path, use")
async def test_other_path_of_v4_names_what_to_use(environment: ProxyEnvironment, path: str, use: str) -> None:
    response = await environment.get(f"{path}?token={KEY}")
    assert response.status == 404
    assert ("__class__" in response.json) == ("/rest/" not in path)
    assert use in response.json["message"]


async def test_usage_of_other_methods(environment: ProxyEnvironment) -> None:
    assert (await environment.get(PATH, "OPTIONS")).headers["allow"] == "GET, HEAD, OPTIONS"
    assert (await environment.get(PATH, "POST")).status == 405
