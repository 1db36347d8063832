"""Access to the admin interface: nothing without the token, forms of its own pages only, and no token in any output."""

import asyncio
import dataclasses
import io
import re

import aiohttp.helpers
import msgspec
import pytest
import yarl
from support import cases, html_forms
from support.running_admin import BEARER, PAGE, READ_TOKEN, TOKEN, AdminClient
from together.environment import ProxyEnvironment, StartEnvironment

from proxy import config
from proxy.web.admin import guard, pages, requests, sessions

SECONDS = 20
OPEN = {"/healthz", "/readyz", "/metrics", "/sign-in", "/sign-in/oidc", "/sign-in/oidc/return", "/static/{name}"}


def session(client: AdminClient) -> str:
    """Return the cookie of the session."""
    return next(cookie.value for cookie in client.session.cookie_jar if cookie.key == guard.COOKIE)


async def is_signed_in(client: AdminClient) -> bool:
    return (await client.send("GET", "/", headers=PAGE)).status == 200


async def test_nothing_but_checks_files_and_the_sign_in_page_is_open(admin: AdminClient) -> None:
    routes = [(method, path) for method, path in admin.routes if path not in OPEN]
    assert {path for _, path in routes} >= set().union(*(page.paths for page in pages.PAGES)) | {
        "/overview.json",
        "/sign-out",
    }
    for method, path in [*routes, ("GET", "/no/such/page"), ("POST", "/no/such/page"), ("DELETE", "/")]:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}, {"Cookie": "a=b"}):
            response = await admin.send(method, path, headers=headers)
            if response.status == 429 and headers.get("Authorization", "").startswith("Bearer"):
                continue  # enough wrong tokens
            assert response.status == 401, (method, path)
            assert set(await response.json()) == {"message"}


async def test_browsers_are_sent_to_the_sign_in_page_and_back(admin: AdminClient) -> None:
    for page in pages.PAGES:
        response = await admin.send("GET", f"{page.url}?a=b&c", headers=PAGE)
        assert response.status == 303
        location = response.headers["Location"]
        form = html_forms.first_form(await (await admin.send("GET", location, headers=PAGE)).text())
        assert form.fields["next"] == f"{page.url}?a=b&c"
    signed_in = await admin.sign_in(target=form.fields["next"])
    assert (signed_in.status, signed_in.headers["Location"]) == (303, form.fields["next"])
    assert await is_signed_in(admin)


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/nothing", "/\r\nX: y", "javascript:1"]
)
async def test_sign_in_leads_to_no_other_site(admin: AdminClient, target: str) -> None:
    response = await admin.sign_in(target=target)
    assert (response.status, response.headers["Location"]) == (303, "/")
    assert "X" not in response.headers


async def test_cookie_is_kept_from_scripts_other_sites_and_plain_http(admin: AdminClient) -> None:
    response = await admin.sign_in()
    cookie = response.headers["Set-Cookie"]
    assert cookie.startswith("__Host-")
    words = {word.strip() for word in cookie.split(";")[1:]}
    assert words == {"HttpOnly", "Secure", "SameSite=Strict", "Path=/", f"Max-Age={sessions.SESSION_SECONDS}"}


async def test_session_ends_with_its_time_and_when_somebody_signs_out(managed: ProxyEnvironment) -> None:
    admin = managed.admin
    await admin.sign_in()
    managed.time.advance(sessions.SESSION_SECONDS)
    assert not await is_signed_in(admin)
    await admin.sign_in()
    assert await is_signed_in(admin)
    assert (await admin.submit("/", "/sign-out")).headers["Location"] == "/sign-in"
    assert not await is_signed_in(admin)


async def test_planted_session_is_replaced_when_somebody_signs_in(admin: AdminClient) -> None:
    """Session fixation: a cookie that somebody else knows never becomes that of the user."""
    await admin.sign_in()
    planted = session(admin)
    await admin.sign_in()
    assert session(admin) != planted
    admin.session.cookie_jar.clear()
    forged = "A" * len(planted)
    assert (await admin.send("GET", "/", headers=PAGE | {"Cookie": f"{guard.COOKIE}={forged}"})).status == 303


READER = {"Authorization": f"Bearer {READ_TOKEN}"}


async def test_readers_see_every_page_and_change_nothing(admin: AdminClient, log_output: io.StringIO) -> None:
    for page in pages.PAGES:
        for path in (page.url, f"/{page.name}.json"):
            assert (await admin.send("GET", path, headers=READER | PAGE)).status == 200, path
    changes = [path for method, path in admin.routes if method == "POST" and path not in OPEN | {"/sign-out"}]
    assert {action.path for action in pages.ACTIONS} < set(changes)
    for path in changes:
        response = await admin.send("POST", path, headers=READER)
        if path.startswith("/explain"):
            assert response.status != 403
            continue
        refusal = (response.status, (await response.json())["message"])
        assert refusal == (
            403,
            "readers change nothing: use the token of operators, admin.token, or sign in as an operator",
        ), path
    assert "admin action refused" in log_output.getvalue()


async def test_session_of_a_reader_has_no_forms_and_its_own_csrf_token(admin: AdminClient) -> None:
    await admin.sign_in()
    operator = await (await admin.send("GET", "/cache", headers=PAGE)).text()
    await admin.sign_in(READ_TOKEN)
    forms: dict[str, html_forms.HtmlForm] = {}
    for page in pages.PAGES:
        html = await (await admin.send("GET", page.url, headers=PAGE)).text()
        assert ">read only</span>" in html
        forms |= {form.action: form for form in html_forms.all_forms(html)}
    assert set(forms) == {"/sign-out", "/explain"}
    stolen = next(form for form in html_forms.all_forms(operator) if form.action == "/sign-out").fields
    for fields in (stolen, forms["/sign-out"].fields):
        assert (await admin.send("POST", "/cache/clear", headers=PAGE, data=fields)).status == 403
    assert (await admin.submit("/", "/sign-out")).status == 303
    assert not await is_signed_in(admin)


async def test_removed_read_only_token_ends_its_sessions_only(admin: AdminClient) -> None:
    await admin.sign_in()
    operator = session(admin)
    await admin.sign_in(READ_TOKEN)
    gateway = admin.service.gateway
    alone = config.AdminSettings(token=config.Secret(TOKEN))
    settings = msgspec.structs.replace(gateway.settings, admin=alone)
    admin.service.gateway = dataclasses.replace(gateway, settings=settings)
    assert not await is_signed_in(admin)
    assert (await admin.send("GET", "/overview.json", headers=READER)).status == 401
    admin.session.cookie_jar.clear()
    cookie = PAGE | {"Cookie": f"{guard.COOKIE}={operator}"}
    assert (await admin.send("GET", "/", headers=cookie)).status == 200


@pytest.mark.parametrize("csrf", [None, "", "wrong", "other"])
async def test_form_without_the_csrf_token_of_its_session_does_nothing(admin: AdminClient, csrf: str | None) -> None:
    await admin.sign_in()
    if csrf == "other":
        old = html_forms.first_form(await (await admin.send("GET", "/", headers=PAGE)).text())
        csrf = old.fields["csrf"]
        await admin.sign_in()
    fields = {} if csrf is None else {"csrf": csrf}
    for path in ("/sign-out", *(action.path for action in pages.ACTIONS)):
        assert (await admin.send("POST", path, headers=PAGE, data=fields)).status == 403
    assert await is_signed_in(admin)


@cases.parametrize("headers,status")
async def test_form_of_another_site_does_nothing(admin: AdminClient, headers: dict[str, str], status: int) -> None:
    await admin.sign_in()
    form = html_forms.first_form(await (await admin.send("GET", "/", headers=PAGE)).text())
    sent = {name: value.replace("HERE", admin.url) for name, value in headers.items()}
    response = await admin.send("POST", "/sign-out", headers=PAGE | sent, data=form.fields)
    assert response.status == status
    assert await is_signed_in(admin) == (status == 403)
    tokens = {"token": TOKEN, "next": "/"}
    assert (await admin.send("POST", "/sign-in", headers=PAGE | sent, data=tokens)).status == status


async def test_wrong_tokens_are_limited_for_each_address(managed: ProxyEnvironment) -> None:
    admin = managed.admin
    await admin.sign_in()
    statuses = [(await admin.sign_in("wrong")).status for _ in range(guard.WRONG_TOKENS.count + 1)]
    assert statuses == [401] * guard.WRONG_TOKENS.count + [429]
    refused = await admin.send("GET", "/overview.json", headers=BEARER)
    assert (refused.status, refused.headers["Retry-After"]) == (429, "60")
    assert await is_signed_in(admin)  # sessions go on
    elsewhere = BEARER | {"X-Forwarded-For": "192.0.2.7"}  # from a TLS front on this machine
    assert (await admin.send("GET", "/overview.json", headers=elsewhere)).status == 200
    managed.time.advance(60)
    assert (await admin.sign_in()).status == 303


async def test_program_of_the_machine_cannot_guess_faster_with_other_addresses(managed: ProxyEnvironment) -> None:
    """Any local user can claim to be a TLS front."""
    limit = guard.WRONG_TOKENS_CLAIMED.count
    for number in range(limit + 1):
        headers = {"Authorization": "Bearer wrong", "X-Forwarded-For": f"192.0.2.{number}"}
        status = (await managed.admin.send("GET", "/overview.json", headers=headers)).status
        assert status == (401 if number < limit else 429)
    assert (await managed.admin.send("GET", "/overview.json", headers=BEARER)).status == 200
    managed.time.advance(60)
    elsewhere = BEARER | {"X-Forwarded-For": "192.0.2.1"}
    assert (await managed.admin.send("GET", "/overview.json", headers=elsewhere)).status == 200


@cases.parametrize("headers,status")
async def test_sign_in_needs_tls_or_a_browser_on_the_same_machine(
    admin: AdminClient, headers: dict[str, str], status: int
) -> None:
    response = await admin.send("GET", "/sign-in", headers=PAGE | headers)
    assert response.status == status
    assert ("ssh -L" in await response.text()) == (status == 403)
    posted = await admin.send("POST", "/sign-in", headers=PAGE | headers, data={"token": TOKEN, "next": "/"})
    assert posted.status == (303 if status == 200 else 403)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8088", "127.0.0.1.evil.example", "localhost.evil.example"]
)
async def test_name_of_somebody_else_is_refused(admin: AdminClient, host: str) -> None:
    """DNS rebinding: a page of that name could otherwise read what needs no token."""
    for _, path in admin.routes:
        response = await admin.send("GET", path, headers=BEARER | {"Host": host})
        assert response.status == 400, path
        assert "v3bridge_" not in await response.text()


@pytest.mark.parametrize("parameters", ["; charset=punycode", "; charset=idna", '; charset="utf-7"', ";a" * 8_000])
async def test_form_in_another_encoding_is_refused_undecoded(
    admin: AdminClient, monkeypatch: pytest.MonkeyPatch, parameters: str
) -> None:
    """Anybody could stop the event loop for seconds with a slow codec, or with parameters that are slow to parse."""
    monkeypatch.delattr(aiohttp.helpers, "parse_content_type")
    headers = {"Content-Type": f"application/x-www-form-urlencoded{parameters}"}
    response = await admin.send("POST", "/sign-in", headers=headers, data=f"token={TOKEN}")
    assert response.status == 415, await response.text()
    assert (await admin.send("GET", "/healthz", headers=headers)).status == 200


async def test_form_that_is_never_sent_releases_its_connection(
    admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "FORM_SECONDS", 0.1)
    reader, writer = await asyncio.open_connection(port=yarl.URL(admin.url).port, host="127.0.0.1")
    writer.write(
        b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken"
    )
    writer.write_eof()  # a client that has ended, which the server must not wait for
    async with asyncio.timeout(SECONDS):
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
    writer.close()


async def test_settings_of_a_new_configuration_count_at_once(admin: AdminClient) -> None:
    await admin.sign_in()
    gateway = admin.service.gateway
    listen = msgspec.structs.replace(gateway.settings.listen, trusted_proxies=(config.Network("192.0.2.0/24"),))
    rotated = config.AdminSettings(token=config.Secret("the-next-admin-token"))
    settings = msgspec.structs.replace(gateway.settings, admin=rotated, listen=listen)
    admin.service.gateway = dataclasses.replace(gateway, settings=settings)
    assert not await is_signed_in(admin)
    forwarded = BEARER | {"X-Forwarded-For": "198.51.100.1, 192.0.2.1"}
    statuses = [(await admin.send("GET", "/overview.json", headers=forwarded)).status for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    # The limit is that of the client, not that of the proxy.
    assert (await admin.send("POST", "/sign-in", data={"token": "the-next-admin-token"})).status == 303
    assert await is_signed_in(admin)


async def test_every_response_has_the_security_headers(admin: AdminClient) -> None:
    targets = [*(path for _, path in admin.routes), "/no/such/page", "/static/admin.css", "/" * 600]
    for headers in ({}, PAGE, BEARER, BEARER | PAGE, {"Host": "evil.example"}):
        for target in targets:
            response = await admin.send("GET", target, headers=headers)
            assert guard.HEADERS.items() <= dict(response.headers).items(), target


async def test_errors_are_pages_for_browsers_and_json_for_programs(admin: AdminClient) -> None:
    program = await admin.send("GET", "/nothing", headers=BEARER)
    assert (program.status, await program.json()) == (404, {"message": "there is no such page"})
    browser = await admin.send("GET", "/nothing", headers=BEARER | PAGE)
    assert (browser.status, browser.content_type) == (404, "text/html")
    assert "<h1>No such page</h1>" in await browser.text()
    wrong_method = await admin.send("PUT", "/", headers=BEARER)
    assert (wrong_method.status, wrong_method.headers["Allow"]) == (405, "GET,HEAD")


async def test_error_of_a_page_is_told_without_its_trace(
    admin: AdminClient, monkeypatch: pytest.MonkeyPatch, log_output: io.StringIO
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("text of the mistake")

    monkeypatch.setattr(msgspec.json, "encode", fail)
    response = await admin.send("GET", "/overview.json", headers=BEARER)
    assert (response.status, await response.json()) == (500, {"message": "internal error; the log has its place"})
    assert "internal error caught" in log_output.getvalue()


async def test_nothing_of_it_is_on_the_public_port(start: StartEnvironment) -> None:
    async with start(admin=True, listen={"metrics": False}) as environment:
        admin = environment.admin
        paths = {path for _, path in admin.routes} - {"/healthz", "/openapi.json"}  # the public port has its own
        for path in paths | {"/static/admin.css"}:
            for headers in ({}, BEARER | PAGE):
                response = await admin.proxy.get(path, headers=headers)
                error = await response.json()
                assert (response.status, error["__class__"]) == (404, "ClientErrorResponse"), path
                assert ("listen.metrics: true" in error["message"]) == (path in {"/readyz", "/metrics"})
        assert (await admin.proxy.get("/healthz")).status == 200


async def test_token_is_in_no_output(start: StartEnvironment, log_output: io.StringIO) -> None:
    outputs = []
    async with start(admin=True) as environment:
        admin = environment.admin
        for token in (TOKEN, READ_TOKEN, f"{TOKEN}x", "wrong"):
            response = await admin.sign_in(token)
            outputs += [await response.text(), str(response.headers)]
        for path in {path for _, path in admin.routes} | {f"/nothing?token={'x'}"}:
            for headers in (BEARER, BEARER | PAGE, {"Authorization": f"Bearer {TOKEN}x"}):
                response = await admin.send("GET", path, headers=headers)
                outputs += [await response.text(), str(response.headers)]
        outputs.append(await (await admin.send("GET", "/metrics")).text())
    outputs.append(log_output.getvalue())
    assert "admin token refused" in outputs[-1]
    assert [text for text in outputs if TOKEN in text or READ_TOKEN in text] == []
    assert not re.search(sessions_value(admin), log_output.getvalue())


def sessions_value(client: AdminClient) -> str:
    return re.escape(session(client))
