"""Request targets as people see them: without API keys, and always text that can be encoded."""

import time

import pytest

from proxy.redaction import Redaction

OURS = 'ours-"é+/='
REDACTION = Redaction(is_key=lambda text: text in ("OURS", OURS))


@pytest.mark.parametrize(
    "target, shown",
    [
        ("/v3/parts/match?apikey=SECRET&queries=[]", "/v3/parts/match?apikey=…&queries=[]"),
        ("/v3/parts/match?%61pikey=SECRET", "/v3/parts/match?%61pikey=…"),
        ("/v3/parts/match?apikey[]=SECRET&APIKEY=OTHER", "/v3/parts/match?apikey[]=…&APIKEY=…"),
        ("/v3/parts/search?q=SECRET&apikey=SECRET", "/v3/parts/search?q=…&apikey=…"),
        ("/v3/SECRET-KEY/xSECRET-KEYx?apikey=SECRET-KEY", "/v3/…/x…x?apikey=…"),
        ("/v3/parts/match?apikey=S%45CRET&a=SECRET&b=%53ECRET", "/v3/parts/match?apikey=…&a=…&b=…"),
        (
            "/v3/parts/match?apikey=SECRET&queries=[%7B%22a%22:%22SECRET%22%7D]",
            "/v3/parts/match?apikey=…&queries=[%7B%22a%22:%22…%22%7D]",
        ),
        ("/v3/parts/match?apikey=SECRET&queries=a-%2553ECRET", "/v3/parts/match?apikey=…&queries=a-…"),
        ("/v3/parts/match?SECRET&SECRET=1&apikey=SECRET", "/v3/parts/match?…&…=1&apikey=…"),
        ("/v3/parts/match?apikey=a&queries=abc", "/v3/parts/match?apikey=…&queries=abc"),
        ("/v3/parts/match?key=OURS&x=%4fURS&y=OURS1", "/v3/parts/match?key=…&x=…&y=OURS1"),
        ("/v3/parts/OURS", "/v3/parts/…"),
        ("/v3/parts/search?apikey=&q=a", "/v3/parts/search?apikey=&q=a"),
        ("http://name:password@host:80/v3/parts/search?q=a", "/v3/parts/search?q=a"),
        ("/v3/parts/\udcff?q=\udcfe", "/v3/parts/\ufffd?q=\ufffd"),
        ("/healthz", "/healthz"),
        ("/v3/parts/match&apikey=UNKNOWN", "/v3/parts/match&apikey=…"),
        ("/v3/parts/match;apikey=UNKNOWN?q=1", "/v3/parts/match;apikey=…?q=1"),
        ("/v3/parts/match?q=1%26apikey=UNKNOWN&q=2", "/v3/parts/match?q=1%26apikey=…&q=2"),
        ("/v3/parts/match?apikey%3DUNKNOWN", "/v3/parts/match?apikey%3D…"),
        ("/v3/parts/match?apikey%253DUNKNOWN", "/v3/parts/match?apikey%253D…"),
        ("/v3/parts/match?APIKEY:UNKNOWN", "/v3/parts/match?APIKEY:…"),
        ("/v3/parts/match?apikeyUNKNOWN", "/v3/parts/match?apikey…"),
        ("/v3/parts/match?apikey=a'b)c&q=1", "/v3/parts/match?apikey=…&q=1"),
        ("/v3/parts/match?apikey=a%26b&q=1", "/v3/parts/match?apikey=…&q=1"),
        ("/v3/parts/search?q=erp%20OURS,%20OURS!", "/v3/parts/search?q=erp%20…,%20…!"),
        ("/v3/parts/search?q=ours-%22%C3%A9%2B%2F%3D", "/v3/parts/search?q=…"),
        (
            '/v3/parts/match?queries=[{"reference":"ours-\\"\\u00e9%2B/="}]',
            '/v3/parts/match?queries=[{"reference":"…"}]',
        ),
    ],
)
def test_target_is_shown_without_api_keys(target: str, shown: str) -> None:
    assert REDACTION.request(target, "", 1_000)[0] == shown
    assert REDACTION.request(shown, "", 1_000)[0] == shown


def test_target_is_cut_after_its_keys_are_hidden() -> None:
    target = "/v3/parts/match?apikey=SECRET&q=" + "x" * 100
    assert REDACTION.request(target, "", 40)[0] == "/v3/parts/match?apikey=…&q=xxxxxxxxxxxxx"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("erp/1.2 (key S3CR%2BT)", "erp/1.2 (key …)"),
        ("S3CR+T S3CR+T", "… …"),
        ("erp/1 key=OURS", "erp/1 key=…"),
        ("erp/1 api_key: UNKNOWN", "erp/1 api_key: …"),
        (f"erp/1 key={OURS}", "erp/1 key=…"),
        ("python-requests/2.31.0", "python-requests/2.31.0"),
        ("", ""),
    ],
)
def test_texts_of_a_client_are_shown_without_its_api_keys(text: str, shown: str) -> None:
    assert REDACTION.request("/v3/parts/match?queries=[]&apikey=S3CR%2BT&apikey=", text, 100)[1] == shown


@pytest.mark.parametrize(
    "repeated", ["apikey", "apikey=%26", "\\", "%25", "\\u", "apikey[", "apikey=;", "a=", "%", "{", "[", "apikey=%2525"]
)
def test_a_hostile_target_is_shown_in_bounded_time(repeated: str) -> None:
    target = f"/v3/parts/match?q={repeated * (69_000 // len(repeated))}u"
    began = time.process_time()
    REDACTION.request(target, target, 4_096)
    assert time.process_time() - began < 2
