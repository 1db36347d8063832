"""The page Explain: what the command prints, as a page; of any text, without sending anything and without its key."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.running_admin import BEARER, PAGE, AdminClient
from together.environment import ProxyEnvironment

from proxy.explain.explainer import Explainer
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.web.admin.pages import explain

TARGET = '/v3/parts/match?queries=[{"mpn":"SN74S74N"}]&include[]=specs'
HOSTILE = """</textarea></pre><script>ruined()</script><img src=x onerror=ruined()>'"{{7*7}}\u202e\x07\x1b[31m"""


async def explained(admin: AdminClient, request: str, **fields: str) -> Any:
    """The JSON of an explanation that was asked for by POST."""
    response = await admin.send("POST", "/explain.json", headers=BEARER, data={"request": request, **fields})
    assert response.status == 200, await response.text()
    return await response.json()


async def shown(admin: AdminClient, request: str, **fields: str) -> str:
    """The page of an explanation that was asked for by POST."""
    response = await admin.send("POST", "/explain", headers=BEARER | PAGE, data={"request": request, **fields})
    assert response.status == 200, await response.text()
    return await response.text()


async def test_explanation_is_that_of_the_command(managed: ProxyEnvironment) -> None:
    before = managed.sandbox.request_counts.graphql
    page = await explained(managed.admin, TARGET)
    gateway = managed.admin.service.gateway
    path, query, key = parse_target(TARGET)
    expected = Explainer(gateway.settings).explain(V3Request(path, query), apikey=key)
    assert page["explanations"] == [json.loads(msgspec.json.encode(expected))]
    assert managed.sandbox.request_counts.graphql == before
    html = await shown(managed.admin, TARGET)
    for part in ("supMultiMatch", "At most <strong>3 parts</strong>", "manufacturer_uid()", "POST http"):
        assert part in html


@pytest.mark.parametrize(
    "text",
    [
        f"https://octopart.com/api{TARGET}",
        f"GET {TARGET} HTTP/1.1",
        f"curl -g 'http://127.0.0.1:8080{TARGET}'",
        json.dumps({"request": {"method": "GET", "url": f"https://octopart.com/api{TARGET}"}}),
    ],
)
async def test_every_form_of_a_request_is_understood(admin: AdminClient, text: str) -> None:
    (explanation,) = (await explained(admin, text))["explanations"]
    assert (explanation["endpoint"], explanation["error"]) == ("/parts/match", None)
    assert explanation["queries"][0]["keys"]["mpn"] == "SN74S74N"


async def test_link_to_a_request_shows_its_explanation(admin: AdminClient) -> None:
    html = await admin.page(f"/explain?request={quote(TARGET)}&application=demo")
    assert "supMultiMatch" in html
    assert '<option value="demo" selected>' in html or "<option selected>demo</option>" in html


async def test_refused_request_is_explained_with_its_error(admin: AdminClient) -> None:
    page = await explained(admin, "/v3/parts/match?queries=nonsense")
    assert page["explanations"][0]["error"]["status"] == 400
    assert "Nothing is sent to Nexar, and nothing is paid" in await shown(admin, "/v3/parts/match?queries=nonsense")


@pytest.mark.parametrize("language,mark", [("python", "import"), ("curl", "#!/bin/")])
async def test_program_is_written_on_request(admin: AdminClient, language: str, mark: str) -> None:
    page = await explained(admin, TARGET, language=language)
    assert mark in page["program"]
    assert f"Program in {language}" in await shown(admin, TARGET, language=language)


async def test_request_without_a_program_says_why(admin: AdminClient) -> None:
    page = await explained(admin, "/v3/parts/match?queries=nonsense", language="python")
    assert page["program"] is None
    assert "v3 refuses this request" in page["no_program"]


async def test_key_is_in_no_output(admin: AdminClient) -> None:
    key = "PLANTED-KEY-0123"
    texts = [
        f"{TARGET}&apikey={key}",
        f"curl -g 'http://127.0.0.1:8080{TARGET}&apikey={key}' -H 'Authorization: {key}'",
        f"{TARGET}&other={key}&apikey={key}",
        f"nothing apikey={key}",
        f"/no/such/path/{key}?apikey={key}",
        f"'{key}",
    ]
    for text in texts:
        assert key not in json.dumps(await explained(admin, text))
        assert key not in await shown(admin, text)


async def test_key_chooses_the_application(admin: AdminClient) -> None:
    (known,) = (await explained(admin, f"{TARGET}&apikey=EXAMPLE_KEY"))["explanations"]
    assert (known["client"]["chosen_by"], known["client"]["problem"]) == ("the request's API key", None)
    (unknown,) = (await explained(admin, f"{TARGET}&apikey=wrong"))["explanations"]
    assert "does not have the API key" in unknown["client"]["problem"]


async def test_configured_secrets_are_in_no_explanation(managed: ProxyEnvironment) -> None:
    default = managed.sandbox.default_application
    for language in explain.LANGUAGES:
        output = json.dumps(await explained(managed.admin, TARGET, language=language))
        assert default.client_secret not in output
        assert default.client_id not in output


@pytest.mark.parametrize("text", ["nothing", "/etc/passwd", "curl", "[1,2", "a\nb", "\x00", "{" * 5_000, HOSTILE])
async def test_text_without_a_request_is_refused_without_repeating_it(admin: AdminClient, text: str) -> None:
    page = await explained(admin, text)
    assert page["problem"]
    assert (page["explanations"], page["request"]) == ([], "")
    html = await shown(admin, text)
    assert "<script>ruined" not in html
    assert 'role="alert"' in html


async def test_text_is_limited(admin: AdminClient) -> None:
    page = await explained(admin, "/v3/parts/match?queries=" + "x" * explain.TEXT_MAX)
    assert "longer than 70,000 characters" in page["problem"]


async def test_requests_beyond_the_first_are_counted(admin: AdminClient) -> None:
    har = json.dumps([{"request": {"url": f"https://octopart.com/api{TARGET}"}}] * 9)
    page = await explained(admin, har, language="python")
    assert (len(page["explanations"]), page["omitted"]) == (explain.EXPLAINED_MAX, 9 - explain.EXPLAINED_MAX)
    assert "one request at a time" in page["no_program"]
    assert "4 further requests are not explained here" in await shown(admin, har)


async def test_hostile_text_is_shown_as_text(admin: AdminClient) -> None:
    queries = quote(json.dumps([{"mpn": HOSTILE, "reference": HOSTILE}]))
    for target in (
        f"/v3/parts/match?queries={queries}&{quote(HOSTILE)}={quote(HOSTILE)}",
        f"/v3/parts/search?q={quote(HOSTILE)}&filter[fields][{quote(HOSTILE)}]={quote(HOSTILE)}",
        f"/v3/{quote(HOSTILE)}?{quote(HOSTILE)}",
        f"/v3/parts/match?queries={quote(json.dumps([{HOSTILE: HOSTILE}]))}&callback={quote(HOSTILE)}",
    ):
        html = await shown(admin, target, language="python")
        assert "<script>ruined" not in html
        assert "<img" not in html
        assert "49" not in html.split("{{7*7}}")[0][-9:]
        assert not set("\u202e\x07\x1b") & set(html)


@pytest.mark.parametrize("fields", [{"language": "perl"}, {"language": "<b>"}])
async def test_unknown_language_is_refused(admin: AdminClient, fields: dict[str, str]) -> None:
    response = await admin.send("POST", "/explain", headers=BEARER, data={"request": TARGET, **fields})
    assert response.status == 400


async def test_unknown_application_is_named_as_such(admin: AdminClient) -> None:
    page = await explained(admin, TARGET, application="<b>another</b>")
    assert "there are demo" in page["problem"]
    assert "<b>another" not in await shown(admin, TARGET, application="<b>another</b>")


async def test_form_needs_the_token_of_its_session(admin: AdminClient) -> None:
    await admin.sign_in()
    refused = await admin.send("POST", "/explain", headers=PAGE, data={"request": TARGET})
    assert refused.status == 403
    response = await admin.submit("/explain", "/explain", request=TARGET)
    assert response.status == 200
    assert "supMultiMatch" in await response.text()


values = st.text(max_size=30).map(lambda text: quote(text, errors="replace")) | st.sampled_from(
    ["%ff%fe", "[{}]", "%5B%5D", "10%", "[" * 40, "%ED%A0%80", "*:*", "-1", "9" * 400]
)
pairs = st.tuples(
    st.sampled_from(["queries", "q", "uid[]", "slice[items]", "filter[queries][]", "x", "apikey"]), values
)
targets = st.builds(
    lambda path, parameters: f"/v3/{path}?" + "&".join(map("=".join, parameters)),
    st.sampled_from(["parts/match", "parts/search", "parts/get_multi", "parts/facet", "brands/search", "%ff", "x"]),
    st.lists(pairs, max_size=5),
)
texts = st.text(max_size=100) | targets | targets.map(lambda target: f"curl -G 'http://a{target}' --data x")


async def test_any_text_gets_a_page(admin: AdminClient) -> None:
    loop = asyncio.get_running_loop()

    @settings(max_examples=50, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(texts)
    @example("/v3/%ff?%ff=%ff")
    @example('/v3/parts/match?queries=[{"mpn":"\\ud800"}]')
    def pastes(text: str) -> None:
        for send in (shown, explained):
            asyncio.run_coroutine_threadsafe(send(admin, text, language="python"), loop).result(30)

    await asyncio.to_thread(pastes)
