"""curl commands are read as curl and the shell read them."""

import pytest

from proxy.explain import curl

URL = "https://octopart.com/api/v3/parts/match"


@pytest.mark.parametrize(
    "command, method, url",
    [
        (f"curl '{URL}?queries=[]'", "GET", f"{URL}?queries=[]"),
        (f'curl -G {URL} -d apikey=K --data-urlencode \'queries=[{{"mpn":"A B"}}]\'', "GET", None),
        (f"curl -sG {URL} --data-urlencode 'mpn=A&B' -d x=1", "GET", f"{URL}?mpn=A%26B&x=1"),
        (f"curl -XGET -H 'Accept: */*' --compressed '{URL}?a=1'", "GET", f"{URL}?a=1"),
        (f"curl --request POST {URL} -d a=1", "POST", URL),
        (f"curl {URL} --data-raw '@x'", "POST", URL),
        (f"curl -I --url {URL}", "HEAD", URL),
        (f"curl -g --get --data-urlencode =a=b {URL}?c=1", "GET", f"{URL}?c=1&a%3Db"),
        (f"$ curl \\\n  -m 5 \\\n  {URL}", "GET", URL),
        (f"curl $'{URL}?q=caf\\u00e9\\'s' -o out.json", "GET", f"{URL}?q=café's"),
        (f"curl --url-query q=1+1 {URL}", "GET", f"{URL}?q=1%2B1"),
        (f"curl -- {URL}", "GET", URL),
        (f"curl -s {URL} 2>/dev/null > out.json | jq .", "GET", URL),
        (f"curl -H '> x' {URL} && rm x", "GET", URL),
        (f"curl '{URL}?queries=\\[\\{{\\}}\\]'", "GET", f"{URL}?queries=[{{}}]"),
        (f"curl -g '{URL}?q=\\['", "GET", f"{URL}?q=\\["),
        (f'curl ^"{URL}?q=1^%5B^" ^\r\n  -H ^"accept: */*^"', "GET", f"{URL}?q=1%5B"),
    ],
)
def test_method_and_url(command: str, method: str, url: str | None) -> None:
    (request,) = curl.parse(command)

    assert curl.is_curl(command)
    assert request.method == method
    assert request.url == (url or f"{URL}?apikey=K&queries=%5B%7B%22mpn%22%3A%22A%20B%22%7D%5D")


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
