"""The vendor's services for a test: what a program sends to them, and what a person does in a browser."""

import html.parser
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from typing import Any, NamedTuple

from acceptance.running import Response, Sandbox, request


class Vendor:
    """The services at the addresses, and with the credentials, that the sandbox prints."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.ways, self.url = sandbox, sandbox.ways, sandbox.url
        self.client = {name: self.ways[name] for name in ("client_id", "client_secret")}
        self.design = {name: self.ways[f"design_{name}"] for name in self.client}

    def request_token(self, wait: bool = True, /, user_agent: str = "a program", **form: str) -> Response:
        """Send a token request, of the first application unless the form names another; `wait` for the rate limit."""
        headers = {"content_type": "application/x-www-form-urlencoded", "user_agent": user_agent}
        sent = urllib.parse.urlencode({"grant_type": "client_credentials", **self.client, **form})
        while True:
            reply = request(self.ways["token_url"], method="POST", body=sent, **headers)
            if reply.status != 429 or not wait:
                return reply
            time.sleep(float(reply.headers["retry-after"]))

    def token(self, **form: str) -> str:
        return str(self.request_token(**form).json["access_token"])

    def ask(self, query: str, token: str = "", **variables: Any) -> Response:
        """Send a GraphQL document."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        body = json.dumps({"query": query, "variables": variables})
        return request(self.ways["graphql_url"], method="POST", body=body, content_type="application/json", **headers)

    def data(self, query: str, token: str = "", **variables: Any) -> Any:
        """The data of a response without errors."""
        reply = self.ask(query, token, **variables)
        assert "errors" not in reply.json, reply.text
        return reply.json["data"]

    def mutate(self, name: str, fields: str, token: str, /, **given: Any) -> Any:
        """The payload of a design mutation; its input type has the mutation's name."""
        query = f"mutation($input: D{name[1:]}Input!) {{ {name}(input: $input) {{ {fields} errors {{ message }} }} }}"
        payload = self.data(query, token, input=given)[name]
        assert payload["errors"] == []
        return payload

    def get(self, target: str) -> Any:
        """The JSON at a path."""
        reply = request(self.url, target)
        assert reply.status == 200, reply.text
        return reply.json


class Page(NamedTuple):
    """The page at the end of a navigation, or the URL outside the vendor that it leads to."""

    status: int
    text: str
    url: str

    @property
    def parameters(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.url).query))


class _SameHost(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Person:
    """A person with a browser that has cookies and no scripts."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor
        self._opener = urllib.request.build_opener(_SameHost, urllib.request.HTTPCookieProcessor(CookieJar()))

    def open(self, path: str, data: bytes | None = None, **headers: str) -> Page:
        """Open a page, or send a form or a body there."""
        headers = {"Accept": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
        asked = urllib.request.Request(urllib.parse.urljoin(self._vendor.url, path), data, headers)
        try:
            with self._opener.open(asked, timeout=30) as response:
                return Page(response.status, response.read().decode(), response.url)
        except urllib.error.HTTPError as error:
            with error:
                return Page(error.code, error.read().decode(), error.headers.get("Location") or error.url)

    def fill(self, page: Page, action: str, **fields: str) -> Page:
        """Fill in the form of a page that is sent to a path with this end, and send it."""
        form = _Form(page.text, action)
        return self.open(form.action, urllib.parse.urlencode({**form.fields, **fields}).encode())

    def sign_in(self, page: Page) -> Page:
        ways = self._vendor.ways
        return self.fill(page, "/login", email=ways["user_email"], password=ways["user_password"])


class _Form(html.parser.HTMLParser):
    def __init__(self, page: str, end: str) -> None:
        super().__init__()
        self.action, self._end, self._open = "", end, False
        self.fields: dict[str, str] = {}
        self.feed(page)
        assert self.action, f"no form for {end} in {page}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = not self.action and given.get("action", "").endswith(self._end)
            self.action = given["action"] if self._open else self.action
        elif self._open and tag in ("input", "textarea") and (given.get("type") not in CHOICES or "checked" in given):
            self.fields[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "form"


CHOICES = ("checkbox", "radio")
