"""Sign-in with OpenID Connect: against an identity provider that keeps to the protocol, and one that attacks."""

import dataclasses
import io
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import msgspec
import pytest
from support import cases, html_forms
from support.running_admin import BEARER, PAGE, SETTINGS, AdminClient
from together.admin import identity_provider
from together.admin.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from together.environment import ProxyEnvironment

from proxy import config
from proxy.web.admin import guard, sign_in
from proxy.web.admin import identity_provider as client

RETURN = "/sign-in/oidc/return"


@pytest.fixture
async def provider(managed: ProxyEnvironment) -> AsyncIterator[IdentityProvider]:
    async with identity_provider.running(managed.time) as running:
        configure(managed.admin, running)
        yield running


def configure(admin: AdminClient, provider: IdentityProvider, **changes: Any) -> None:
    """Set admin.oidc of the running service, as a reload does."""
    values = {
        "issuer": config.SecureUrl(provider.issuer),
        "client_id": config.ClientId(CLIENT_ID),
        "client_secret": config.Secret(CLIENT_SECRET),
        "public_url": config.SecureUrl(admin.url),
        "operators": ("v3-operators",),
        "readers": ("v3-readers",),
    }
    settings = msgspec.structs.replace(SETTINGS, oidc=config.OidcSettings(**{**values, **changes}))
    gateway = admin.service.gateway
    changed = msgspec.structs.replace(gateway.settings, admin=settings)
    admin.service.gateway = dataclasses.replace(gateway, settings=changed)


async def leave(admin: AdminClient, target: str = "/") -> str:
    """Follow the link of the sign-in page; return the address at the identity provider."""
    page = await (await admin.send("GET", f"/sign-in?{urlencode({'next': target})}", headers=PAGE)).text()
    link = re.search(r'href="([^"]*/sign-in/oidc[^"]*)"', page)
    assert link
    response = await admin.send("GET", link[1].removeprefix(admin.url), headers=PAGE)
    assert response.status == 303, await response.text()
    return response.headers["Location"]


async def at_the_provider(admin: AdminClient, location: str) -> str:
    """Open the identity provider's page, which sends back at once; return the target at the admin interface."""
    async with admin.session.get(location, allow_redirects=False) as response:
        assert response.headers["Location"].startswith(admin.url + RETURN)
        return response.headers["Location"].removeprefix(admin.url)


async def sign_in_with_oidc(admin: AdminClient, target: str = "/") -> aiohttp.ClientResponse:
    back = await at_the_provider(admin, await leave(admin, target))
    return await admin.send("GET", back, headers=PAGE)


async def is_signed_in(admin: AdminClient) -> bool:
    return (await admin.send("GET", "/", headers=PAGE)).status == 200


async def mistake(admin: AdminClient, response: aiohttp.ClientResponse) -> str:
    """The message on the sign-in page; nobody is signed in."""
    assert not await is_signed_in(admin)
    found = re.search(r'id="mistake">([^<]*)<', await response.text())
    assert found
    return found[1].replace("&#39;", "'")


async def test_person_signs_in_acts_under_their_name_and_signs_out(
    managed: ProxyEnvironment, provider: IdentityProvider
) -> None:
    admin = managed.admin
    location = await leave(admin, "/clients?days=3")
    asked = parse_qs(urlsplit(location).query)
    assert asked["redirect_uri"] == [admin.url + RETURN]
    assert asked["scope"] == ["openid profile email"]
    back = await admin.send("GET", await at_the_provider(admin, location), headers=PAGE)
    assert (back.status, back.headers["Location"]) == (303, "/clients?days=3")
    form = html_forms.first_form(await (await admin.send("GET", "/", headers=PAGE)).text())
    await admin.send("POST", "/cache/clear", headers=PAGE, data=form.fields)
    await admin.submit("/", "/sign-out")
    assert not await is_signed_in(admin)
    entries = (await admin.json("/audit.json"))["entries"]
    assert [each["action"] for each in entries] == ["/sign-out", "/cache/clear", RETURN]
    assert {re.sub("[0-9a-f]{8}", "…", each["who"]) for each in entries} == {"operator ada@example.com, session …"}


async def test_cookies_hold_the_flow_together_and_are_kept_from_scripts(
    admin: AdminClient, provider: IdentityProvider
) -> None:
    left = await admin.send("GET", "/sign-in/oidc", headers=PAGE)
    # Lax: the identity provider, another site, sends the browser back.
    words = {word.strip() for word in left.headers["Set-Cookie"].split(";")[1:]}
    assert words == {"HttpOnly", "Secure", "SameSite=Lax", "Path=/", f"Max-Age={client.SIGN_IN_SECONDS}"}
    back = await at_the_provider(admin, left.headers["Location"])
    cookies = (await admin.send("GET", back, headers=PAGE)).headers.getall("Set-Cookie")
    session = next(each for each in cookies if each.startswith(guard.COOKIE))
    assert "SameSite=Strict" in session
    assert any(each.startswith(f'{sign_in.ATTEMPT}="";') for each in cookies)


@pytest.mark.parametrize("groups", [["v3-readers"], "v3-readers"])
async def test_reader_reads_and_changes_nothing(admin: AdminClient, provider: IdentityProvider, groups: Any) -> None:
    provider.claims = {"groups": groups}
    await sign_in_with_oidc(admin)
    page = await (await admin.send("GET", "/cache", headers=PAGE)).text()
    assert ">read only</span>" in page
    fields = html_forms.first_form(page).fields
    assert (await admin.send("POST", "/cache/clear", headers=PAGE, data=fields)).status == 403


async def test_person_without_a_role_learns_what_is_missing(admin: AdminClient, provider: IdentityProvider) -> None:
    provider.claims = {"groups": ["staff"]}
    response = await sign_in_with_oidc(admin)
    assert response.status == 403
    assert await mistake(admin, response) == (
        "ada@example.com may not use this interface: none of your groups is in admin.oidc.operators or"
        " admin.oidc.readers"
    )


@cases.parametrize("claims,message")
async def test_claim_that_is_missing_or_of_no_use_is_named(
    admin: AdminClient, provider: IdentityProvider, claims: dict[str, Any], message: str
) -> None:
    provider.claims = claims
    assert message in await mistake(admin, await sign_in_with_oidc(admin))


async def test_claims_are_taken_from_userinfo_where_the_id_token_lacks_them(
    admin: AdminClient, provider: IdentityProvider
) -> None:
    provider.claims = {"email": None, "groups": None}
    provider.user_claims = {"email": "grace@example.com", "groups": ["v3-operators"]}
    await sign_in_with_oidc(admin)
    assert (await admin.json("/audit.json"))["entries"][0]["who"].startswith("operator grace@example.com, ")
    await admin.submit("/", "/sign-out")
    provider.user_claims["sub"] = "user-2"
    assert "userinfo is of another person" in await mistake(admin, await sign_in_with_oidc(admin))


ATTACKS = [
    ({"signs_with": "none"}, "its algorithm is none of RS256"),
    ({"signs_with": "HS256"}, "its algorithm is none of RS256"),
    ({"signs_with": "stranger"}, "its signature is wrong"),
    ({"header": {"kid": "unknown"}}, "its key is not among those at jwks_uri"),
    ({"claims": {"iss": "https://evil.example"}}, "it is of another issuer"),
    ({"claims": {"aud": "another-client"}}, "it is for another client"),
    ({"claims": {"aud": [CLIENT_ID, "another"], "azp": "another"}}, "it is for another client (azp)"),
    ({"claims": {"nonce": "another"}}, "it is of another sign-in (nonce)"),
    ({"claims": {"nonce": None}}, "it is of another sign-in (nonce)"),
    ({"claims": {"exp": 1_699_999_000}}, "it has expired"),
    ({"claims": {"exp": None}}, "a claim is missing"),
    ({"claims": {"exp": "never"}}, "it has expired"),
    ({"claims": {"iat": 1_700_009_000}}, "it is of the future"),
    ({"claims": {"sub": None}}, "a claim is missing"),
]


@pytest.mark.parametrize("changes,message", ATTACKS)
async def test_id_token_that_proves_nothing_signs_nobody_in(
    admin: AdminClient, provider: IdentityProvider, changes: dict[str, Any], message: str
) -> None:
    for name, value in changes.items():
        setattr(provider, name, value)
    response = await sign_in_with_oidc(admin)
    assert response.status == 403
    assert f"id_token is not accepted: {message}" in await mistake(admin, response)


async def test_state_of_another_browser_is_refused_before_the_code_is_used(
    admin: AdminClient, provider: IdentityProvider
) -> None:
    """Login CSRF: an attacker's code would sign the victim in as the attacker."""
    stolen = await at_the_provider(admin, await leave(admin))
    await leave(admin)  # the victim's own attempt
    assert "did not begin in this browser" in await mistake(admin, await admin.send("GET", stolen, headers=PAGE))
    for target in (RETURN, f"{RETURN}?code=x", f"{RETURN}?code=x&state=", f"{RETURN}?code=x&state=%C3%A9"):
        assert "did not begin" in await mistake(admin, await admin.send("GET", target, headers=PAGE))
    assert "/token" not in provider.requests


async def test_attempt_ends_with_its_time_and_its_first_return(
    managed: ProxyEnvironment, provider: IdentityProvider
) -> None:
    admin = managed.admin
    back = await at_the_provider(admin, await leave(admin))
    cookie = next(each.value for each in admin.session.cookie_jar if each.key == sign_in.ATTEMPT)
    assert (await admin.send("GET", back, headers=PAGE)).status == 303
    await admin.submit("/", "/sign-out")
    assert "did not begin" in await mistake(admin, await admin.send("GET", back, headers=PAGE))
    replayed = await admin.send("GET", back, headers=PAGE | {"Cookie": f"{sign_in.ATTEMPT}={cookie}"})
    assert "refuses the sign-in (invalid_grant): begin again" in await mistake(admin, replayed)
    back = await at_the_provider(admin, await leave(admin))
    managed.time.advance(client.SIGN_IN_SECONDS)
    assert "did not begin" in await mistake(admin, await admin.send("GET", back, headers=PAGE))


async def test_attempt_is_no_session(admin: AdminClient, provider: IdentityProvider) -> None:
    await leave(admin)
    cookie = next(each.value for each in admin.session.cookie_jar if each.key == sign_in.ATTEMPT)
    assert (await admin.send("GET", "/", headers=PAGE | {"Cookie": f"{guard.COOKIE}={cookie}"})).status == 303


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/nothing"])
async def test_sign_in_leads_to_no_other_site(admin: AdminClient, provider: IdentityProvider, target: str) -> None:
    left = await admin.send("GET", f"/sign-in/oidc?{urlencode({'next': target})}", headers=PAGE)
    back = await at_the_provider(admin, left.headers["Location"])
    assert (await admin.send("GET", back, headers=PAGE)).headers["Location"] == "/"


async def test_error_of_the_provider_and_another_issuer_are_told(
    admin: AdminClient, provider: IdentityProvider
) -> None:
    provider.error = "access_denied"
    assert await mistake(admin, await sign_in_with_oidc(admin)) == (
        "the identity provider did not sign you in: access_denied"
    )
    provider.error = "<b>no code</b>"
    assert (await mistake(admin, await sign_in_with_oidc(admin))).endswith("an unknown error")
    provider.error = ""
    back = await at_the_provider(admin, await leave(admin))
    mixed_up = re.sub("iss=[^&]*", "iss=https%3A%2F%2Fevil.example", back)
    assert "another identity provider" in await mistake(admin, await admin.send("GET", mixed_up, headers=PAGE))


async def test_wrong_secret_is_named_and_shown_nowhere(
    admin: AdminClient, provider: IdentityProvider, log_output: io.StringIO
) -> None:
    configure(admin, provider, client_secret=config.Secret("another-secret"))
    response = await sign_in_with_oidc(admin)
    assert "check admin.oidc.client_id and client_secret" in await mistake(admin, response)
    assert "another-secret" not in await response.text() + log_output.getvalue()


async def test_codes_tokens_and_secrets_are_in_no_log(
    admin: AdminClient, provider: IdentityProvider, log_output: io.StringIO
) -> None:
    back = await at_the_provider(admin, await leave(admin))
    await admin.send("GET", back, headers=PAGE)
    provider.signs_with = "none"
    failed = await at_the_provider(admin, await leave(admin))
    await admin.send("GET", failed, headers=PAGE)
    written = log_output.getvalue()
    assert "admin signed in" in written
    assert "admin sign-in refused" in written
    values = [value for target in (back, failed) for value in parse_qs(urlsplit(target).query)["code"]]
    assert [text for text in (*values, *provider.tokens, CLIENT_SECRET, "an-access-token") if text in written] == []


async def test_refused_sign_ins_are_limited_like_wrong_tokens(
    managed: ProxyEnvironment, provider: IdentityProvider
) -> None:
    admin = managed.admin
    provider.signs_with = "none"
    backs = [await at_the_provider(admin, await leave(admin)) for _ in range(guard.WRONG_TOKENS.count)]
    for _ in backs:
        assert (await sign_in_with_oidc(admin)).status == 403
    refused = await admin.send("GET", "/sign-in/oidc", headers=PAGE)
    assert (refused.status, refused.headers["Retry-After"]) == (429, "60")


async def test_discovery_and_keys_are_kept_and_fetched_again_for_a_new_key(
    managed: ProxyEnvironment, provider: IdentityProvider
) -> None:
    admin = managed.admin
    await sign_in_with_oidc(admin)
    await sign_in_with_oidc(admin)
    assert provider.requests.count("/keys") == 1
    provider.rotate_key()
    assert "key is not among" in await (await sign_in_with_oidc(admin)).text()  # not more often than once a minute
    managed.time.advance(client.UNKNOWN_KEY_SECONDS)
    assert (await sign_in_with_oidc(admin)).status == 303
    assert provider.requests.count("/keys") == 2


@cases.parametrize("discovery,message")
async def test_provider_that_cannot_be_used_is_told_before_anybody_leaves(
    admin: AdminClient, provider: IdentityProvider, discovery: dict[str, Any], message: str
) -> None:
    provider.discovery = discovery
    response = await admin.send("GET", "/sign-in/oidc", headers=PAGE)
    assert response.status == 502
    assert message in await mistake(admin, response)


async def test_provider_that_is_away_leaves_the_token(admin: AdminClient, provider: IdentityProvider) -> None:
    configure(admin, provider, issuer=config.SecureUrl("http://127.0.0.1:9"))
    response = await admin.send("GET", "/sign-in/oidc", headers=PAGE)
    assert response.status == 502
    assert "cannot be reached at http://127.0.0.1:9/.well-known" in await mistake(admin, response)
    assert (await admin.sign_in()).status == 303
    assert (await admin.send("GET", "/overview.json", headers=BEARER)).status == 200


async def test_changed_settings_end_the_sessions(admin: AdminClient, provider: IdentityProvider) -> None:
    await sign_in_with_oidc(admin)
    assert await is_signed_in(admin)
    configure(admin, provider, operators=("others",))
    assert not await is_signed_in(admin)
    assert (await sign_in_with_oidc(admin)).status == 403


async def test_sign_in_needs_an_encrypted_connection(admin: AdminClient, provider: IdentityProvider) -> None:
    for path in ("/sign-in/oidc", RETURN):
        response = await admin.send("GET", path, headers=PAGE | {"Host": "192.0.2.7"})
        assert (response.status, "ssh -L" in await response.text()) == (403, True)
    assert provider.requests == []


async def test_without_settings_there_is_no_such_way(admin: AdminClient) -> None:
    assert "oidc" not in await (await admin.send("GET", "/sign-in", headers=PAGE)).text()
    for path in ("/sign-in/oidc", RETURN):
        assert (await admin.send("GET", path, headers=PAGE)).status == 404
