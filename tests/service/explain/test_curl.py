"""curl commands are read as curl and the shell read them."""

import pytest
from support import cases

from proxy.explain import curl

URL = "https://octopart.com/api/v3/parts/match"


@cases.parametrize("command, method, url")
def test_method_and_url(command: str, method: str, url: str) -> None:
    command = command.replace("URL", URL)
    (request,) = curl.parse(command)
    assert curl.is_curl(command)
    assert (request.method, request.url) == (method, url.replace("URL", URL))


def test_each_url_of_a_command_is_a_request() -> None:
    assert [each.url for each in curl.parse(f"curl -s {URL}?a=1 {URL}?b=2")] == [f"{URL}?a=1", f"{URL}?b=2"]


@pytest.mark.parametrize(
    "command, message",
    [
        ("curl -s", "has no URL"),
        (f"curl '{URL}", "quote"),
        (f"curl {URL} -d", "--data"),
        (f"curl -G {URL} --data-urlencode queries@SECRET.json", "from a file"),
        (f"curl -G {URL} -d @SECRET.json", "from a file"),
    ],
)
def test_a_command_that_cannot_be_read_says_why(command: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        curl.parse(command)
    assert "SECRET" not in str(raised.value)


def test_other_texts_are_no_curl_commands() -> None:
    assert not any(map(curl.is_curl, ("/v3/parts/match", "curly", "GET /v3/curl x", "")))
