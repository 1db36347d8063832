"""Request targets as people see them: without API keys, and always text that can be encoded."""

import pytest

from proxy.parameters import shown_target, without_keys


@pytest.mark.parametrize(
    "target, shown",
    [
        ("/v3/parts/match?apikey=SECRET&queries=[]", "/v3/parts/match?apikey=…&queries=[]"),
        ("/v3/parts/match?%61pikey=SECRET", "/v3/parts/match?%61pikey=…"),
        ("/v3/parts/match?apikey[]=SECRET&APIKEY=OTHER", "/v3/parts/match?apikey[]=…&APIKEY=…"),
        ("/v3/parts/search?q=SECRET&apikey=SECRET", "/v3/parts/search?q=…&apikey=…"),
        ("/v3/SECRET/xSECRETx?apikey=SECRET", "/v3/…/x…x?apikey=…"),
        ("/v3/parts/match?apikey=S%45CRET&a=SECRET&b=%53ECRET", "/v3/parts/match?apikey=…&a=…&b=…"),
        (
            "/v3/parts/match?apikey=SECRET&queries=[%7B%22a%22:%22SECRET%22%7D]",
            "/v3/parts/match?apikey=…&queries=[%7B%22a%22:%22…%22%7D]",
        ),
        ("/v3/parts/match?apikey=SECRET&queries=a-%53ECRET", "/v3/parts/match?apikey=…&queries=…"),
        ("/v3/parts/match?SECRET&SECRET=1&apikey=SECRET", "/v3/parts/match?…&…=1&apikey=…"),
        ("/v3/parts/match?apikey=a&queries=abc", "/v3/parts/match?apikey=…&queries=abc"),
        ("/v3/parts/match?key=OURS&x=%4fURS&y=OURS1", "/v3/parts/match?key=…&x=…&y=OURS1"),
        ("/v3/parts/OURS", "/v3/parts/…"),
        ("/v3/parts/search?apikey=&q=a", "/v3/parts/search?apikey=&q=a"),
        ("http://name:password@host:80/v3/parts/search?q=a", "/v3/parts/search?q=a"),
        ("/v3/parts/\udcff?q=\udcfe", "/v3/parts/\ufffd?q=\ufffd"),
        ("/healthz", "/healthz"),
    ],
)
def test_target_is_shown_without_api_keys(target: str, shown: str) -> None:
    assert shown_target(target, 1_000, is_key=lambda text: text == "OURS") == shown
    assert shown_target(shown, 1_000) == shown


def test_target_is_cut_after_its_keys_are_hidden() -> None:
    assert (
        shown_target("/v3/parts/match?apikey=SECRET&q=" + "x" * 100, 40) == "/v3/parts/match?apikey=…&q=xxxxxxxxxxxxx"
    )


@pytest.mark.parametrize(
    "text, shown",
    [
        ("erp/1.2 (key S3CR%2BT)", "erp/1.2 (key …)"),
        ("S3CR+T S3CR+T", "… …"),
        ("python-requests/2.31.0", "python-requests/2.31.0"),
        ("", ""),
    ],
)
def test_texts_of_a_client_are_shown_without_its_api_keys(text: str, shown: str) -> None:
    assert without_keys(text, "/v3/parts/match?queries=[]&apikey=S3CR%2BT&apikey=") == shown


def test_what_is_cut_off_is_not_looked_at() -> None:
    pairs = "&".join(f"name{number}=value" for number in range(1_000))
    looked_at: list[str] = []

    def is_key(text: str) -> bool:
        looked_at.append(text)
        return text == "name3"

    shown = shown_target(f"/v3/parts/match?{pairs}&apikey=A-KEY-OF-A-CLIENT", 100, is_key)
    assert shown.startswith("/v3/parts/match?name0=value&name1=value&name2=value&…=value&")
    assert len(shown) == 100
    assert len(looked_at) < 30
