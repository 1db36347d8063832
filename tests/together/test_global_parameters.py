"""Tests of global parameters at every endpoint: contract v3-rest.md §2."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment

TI = "9cf2558336484335"
QUERIES = quote('[{"mpn":"SN74S74N"},{"mpn":"none-such"}]')
TARGETS = [
    f"/v3/parts/match?queries={QUERIES}",
    "/v3/parts/search?q=flip-flop&limit=2",
    f"/v3/parts/get_multi?uid[]={TI}",
    f"/v3/parts/{TI}",
    "/v3/brands/search?q=texas",
    "/v3/categories/get_multi?uid[]=8a1e4714bb3951d9",
    "/v3/sellers/2c3be9310496fffc",
]
PARTS = TARGETS[:4]


async def get(environment: ProxyEnvironment, target: str, more: str = "", **options: Any) -> Any:
    mark = "&" if "?" in target else "?"
    return await environment.proxy.get(f"{target}{mark}apikey={running_proxy.KEY}{more}", **options)


def still(body: Any) -> Any:
    """A reply without the time that it took."""
    return {**body, "msec": 0} if "msec" in body else body


def objects(body: Any) -> list[Any]:
    """The Parts, Brands … of a reply, whatever the endpoint."""
    if "results" not in body:
        return [body] if "uid" in body or "__class__" in body else list(body.values())
    return [each for result in body["results"] for each in (result["items"] if "items" in result else [result["item"]])]


@pytest.mark.parametrize("target", TARGETS)
async def test_all_response_formats_have_equal_content(environment: ProxyEnvironment, target: str) -> None:
    plain = still(await (await get(environment, target)).json())
    pretty = await (await get(environment, target, "&pretty_print=1")).text()
    assert pretty.isascii()
    assert pretty == json.dumps(json.loads(pretty), indent=4, sort_keys=True)
    wrapped = await get(environment, target, "&callback=app.handle")
    script = await wrapped.text()
    assert wrapped.content_type == "application/javascript"
    both = await (await get(environment, target, "&callback=f&pretty_print=true&suppress_status_codes=1")).text()
    other = await (await get(environment, target.replace("/v3/", "/api/v3/").replace("?", "/?"), "&userkey=x")).json()
    said = [json.loads(pretty), json.loads(script[11:-1]), json.loads(both[2:-1]), other]
    assert [still(each) for each in said] == [plain] * 4
    assert (script[:11], script[-1:], both[:2]) == ("app.handle(", ")", "f(")


async def test_callback_that_jquery_has_not_replaced_is_a_question_mark(environment: ProxyEnvironment) -> None:
    wrapped = await get(environment, TARGETS[4], "&callback=?")
    text = await wrapped.text()
    assert (wrapped.status, wrapped.content_type, text[:3], text[-2:]) == (200, "application/javascript", "?({", "})")


@pytest.mark.parametrize("target", TARGETS)
async def test_head_returns_the_headers_of_get_without_body(environment: ProxyEnvironment, target: str) -> None:
    found, head = [await get(environment, target, method=method) for method in ("GET", "HEAD")]
    assert (head.status, head.content_type, await head.text()) == (200, found.content_type, "")


@pytest.mark.parametrize("target", TARGETS)
async def test_invalid_global_parameter_is_refused_by_every_endpoint(
    environment: ProxyEnvironment, target: str
) -> None:
    for mistake in ("&callback=a(b)", "&pretty_print=2", "&slice[offers]=x"):
        response = await get(environment, target, mistake)
        reply = await response.json()
        assert (response.status, reply["__class__"]) == (400, "ClientErrorResponse")
        assert mistake[1:].partition("=")[0] in reply["message"]


@pytest.mark.parametrize("target", TARGETS)
async def test_suppressed_status_codes_keep_the_error_body(environment: ProxyEnvironment, target: str) -> None:
    response = await get(environment, target, "&slice[x]=x&suppress_status_codes=true&callback=handle")
    text = await response.text()
    assert (response.status, response.content_type) == (200, "application/javascript")
    assert json.loads(text.removeprefix("handle(").removesuffix(")"))["__class__"] == "ClientErrorResponse"


async def test_invalid_style_parameter_disables_all_style_parameters(environment: ProxyEnvironment) -> None:
    response = await get(environment, TARGETS[4], "&pretty_print=2&suppress_status_codes=true&callback=handle")
    assert (response.status, response.content_type) == (400, "application/json")


@pytest.mark.parametrize("target", TARGETS)
async def test_show_and_hide_are_complementary(environment: ProxyEnvironment, target: str) -> None:
    whole = objects(await (await get(environment, target)).json())
    shown = objects(await (await get(environment, target, "&show[]=uid")).json())
    hidden = objects(await (await get(environment, target, "&hide[0]=uid")).json())
    assert whole
    assert shown == [{"uid": each["uid"]} for each in whole]
    assert hidden == [{name: value for name, value in each.items() if name != "uid"} for each in whole]


@pytest.mark.parametrize("target", TARGETS)
async def test_envelope_is_unaffected_by_show(environment: ProxyEnvironment, target: str) -> None:
    whole = await (await get(environment, target)).json()
    bare = await (await get(environment, target, "&show[]=nothing_known")).json()
    assert objects(whole)
    if "results" in whole:
        assert set(bare) == set(whole)
        assert bare["request"] == whole["request"]
        assert [set(result) for result in bare["results"]] == [set(result) for result in whole["results"]]
    elif "get_multi" in target:
        assert bare == {uid: {} for uid in whole}
    else:
        assert bare == {}


@pytest.mark.parametrize("target", PARTS)
async def test_slice_equals_the_slice_of_the_whole_list(environment: ProxyEnvironment, target: str) -> None:
    whole = objects(await (await get(environment, target)).json())
    for text, cut in (("[0:1]", slice(0, 1)), ("1:5", slice(1, 5)), ("-2:", slice(-2, None)), ("[:]", slice(None))):
        found = objects(await (await get(environment, target, f"&slice[offers]={text}")).json())
        assert found == [{**each, "offers": each["offers"][cut]} for each in whole]
