"""pyoctopart 0.6.0, `parts_match`: flags as 0 and 1, a misspelt include[], and its handling of errors."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyoctopart.exceptions import Octopart503Error
from pyoctopart.octopart import Octopart

QUERY = [{"mpn": "ATMEGA328P-PU"}]


@pytest.fixture
def unreachable_upstream(tmp_path: Path) -> Iterator[str]:
    """A configuration whose upstream refuses every connection."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # taken, but nobody listens
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        config = tmp_path / "config.yaml"
        config.write_text(
            f"upstream: {{graphql_url: '{address}/graphql', token_url: '{address}/connect/token'}}\n"
            "applications: {demo: {apikeys: [EXAMPLE_KEY], client_id: an-id, client_secret: a-secret}}\n"
        )
        yield str(config)


def test_match_returns_the_response_and_its_results(pyoctopart_client: Octopart) -> None:
    queries = [{"mpn": "SN74S74N", "limit": 20, "reference": "a"}, {"sku": "67K1122"}, {"mpn": "NOSUCHPART-1"}]
    reply, results = pyoctopart_client.parts_match(queries)
    assert reply["__class__"] == "PartsMatchResponse"
    assert reply["results"] is results
    assert [(result["hits"], len(result["items"])) for result in results] == [(4, 4), (1, 1), (0, 0)]
    assert [result["reference"] for result in results] == ["a", None, None]


def test_exact_only_is_sent_as_0_or_1(pyoctopart_client: Octopart) -> None:
    replies = [pyoctopart_client.parts_match(QUERY, exact_only=flag)[0] for flag in (False, True)]
    assert [reply["request"]["exact_only"] for reply in replies] == [False, True]
    assert [reply["results"][0]["hits"] for reply in replies] == [2, 1]


def test_include_show_and_hide_are_keyword_arguments(pyoctopart_client: Octopart) -> None:
    included = {"include_datasheets": True, "include_specs": True, "include_imagesets": True}
    _, [all_of_it] = pyoctopart_client.parts_match(QUERY, **included)
    _, [hidden] = pyoctopart_client.parts_match(QUERY, **included, hide_offers=True, hide_specs=True)
    _, [shown] = pyoctopart_client.parts_match(QUERY, **included, show_mpn=True, show_datasheets=True)
    assert {"datasheets", "specs", "imagesets", "offers"} < set(all_of_it["items"][0])
    assert set(all_of_it["items"][0]) - set(hidden["items"][0]) == {"offers", "specs"}
    assert set(shown["items"][0]) == {"mpn", "datasheets"}


def test_the_misspelt_include_is_ignored(pyoctopart_client: Octopart) -> None:
    _, [plain] = pyoctopart_client.parts_match(QUERY)
    _, [misspelt] = pyoctopart_client.parts_match(
        QUERY, include_compliance_documents=True
    )  # sends compliante_documents
    assert misspelt == plain


def test_pretty_print_changes_nothing_for_a_program(pyoctopart_client: Octopart, apikey: str) -> None:
    assert Octopart(apikey, pretty_print=True).parts_match(QUERY)[1] == pyoctopart_client.parts_match(QUERY)[1]


@pytest.mark.usefixtures("pyoctopart_client")
@pytest.mark.parametrize("key", ["no-such-key", None])
def test_a_wrong_key_is_a_json_response_without_results(key: str | None) -> None:
    with pytest.raises(KeyError, match="'results'"):  # it decodes every reply as JSON and takes this out of it
        Octopart(key).parts_match(QUERY)


def test_unknown_endpoints_return_none(pyoctopart_client: Octopart) -> None:
    assert pyoctopart_client.parts_suggest_v2("sn74") is None  # /api/v2/parts/suggest: 404
    assert pyoctopart_client.partattributes_get("pin_count") is None


def test_an_unreachable_service_raises_the_503_error(
    serve: Callable[..., AbstractContextManager[str]],
    unreachable_upstream: str,
    monkeypatch: pytest.MonkeyPatch,
    pyoctopart_client: Octopart,
) -> None:
    with serve("--config", unreachable_upstream) as url:
        monkeypatch.setattr(Octopart, "api_url", url + "/api/v%d/")
        with pytest.raises(Octopart503Error):
            pyoctopart_client.parts_match(QUERY)
