"""Identity provider that signs people in: OpenID Connect's authorization code flow with PKCE (OpenID Connect Core §3.1,
RFC 7636), and the check of what it says. No message holds a code, a token or a secret."""

import asyncio
import base64
import hashlib
import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import quote_plus, urlencode

import aiohttp
import jwt
import msgspec

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.upstream.auth import identity

SIGN_IN_SECONDS = 600  # from leaving to the identity provider to coming back
KEPT_SECONDS = 3600.0  # for which the discovery document and the keys are kept
UNKNOWN_KEY_SECONDS = 60.0  # after which they are fetched for a key that is not among them
REQUEST_SECONDS = 10.0
RESPONSE_BYTES = 262_144
TOLERANCE = 60  # seconds that clocks may differ
NAME_MAX = 200  # characters of a person's name
RETURN_PATH = "/sign-in/oidc/return"
# With a public key only: a signature by the client secret, or by a public key as if it were one, is none.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")

_WRONG = {
    jwt.InvalidAudienceError: "it is for another client",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.InvalidSignatureError: "its signature is wrong",
    jwt.MissingRequiredClaimError: "a claim is missing",
}
_CHECKED: Any = {"require": ["iss", "aud", "sub", "exp", "iat"], "verify_exp": False, "verify_iat": False}

T = TypeVar("T")


class SignInRefused(errors.ClientError):
    """The identity provider did not sign a person in, what it sent does not prove it, or the person has no role."""

    status = 403


class IdentityProviderUnusable(errors.ServerError):
    """The identity provider cannot be reached, or sends what is not OpenID Connect."""

    status = 502


class AttemptSecrets(NamedTuple):
    """Values of one sign-in, each 43 URL-safe characters: what the browser must bring back, what the id_token must
    hold, and what proves to the identity provider who began (RFC 7636)."""

    state: str
    nonce: str
    verifier: str

    @property
    def challenge(self) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")


class Person(NamedTuple):
    """Who has signed in: the name for the audit log."""

    name: str
    role: Literal["operator", "reader"]


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    authorization_response_iss_parameter_supported: bool = False
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str = ""


class IdentityProvider:
    """Client of one identity provider. Its discovery document and keys are fetched when they are needed, and kept."""

    def __init__(self, settings: config.OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._known: tuple[float, _Discovery, list[dict[str, Any]]] | None = None

    async def authorization_url(self, secrets: AttemptSecrets) -> str:
        """Return where to send the browser (Core §3.1.2.1). Raises IdentityProviderUnusable."""
        discovery, _ = await self.discover()
        parameters = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": self._settings.scope,
            "state": secrets.state,
            "nonce": secrets.nonce,
            "code_challenge": secrets.challenge,
            "code_challenge_method": "S256",
        }
        endpoint = discovery.authorization_endpoint
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"

    async def person(self, query: Mapping[str, str], secrets: AttemptSecrets) -> Person:
        """Return the person with whom the browser came back; `query` is what it brought. Raises SignInRefused and
        IdentityProviderUnusable."""
        discovery, _ = await self.discover()
        issuer, issuer_is_sent = query.get("iss"), discovery.authorization_response_iss_parameter_supported
        if issuer != discovery.issuer and (issuer is not None or issuer_is_sent):  # RFC 9207
            raise SignInRefused("another identity provider than admin.oidc.issuer has sent you back: begin again")
        if "code" not in query:
            raise SignInRefused(f"the identity provider did not sign you in: {_error_code(query.get('error'))}")
        tokens = await self._tokens(discovery, query["code"], secrets.verifier)
        claims = await self._claims(tokens.id_token, secrets.nonce)
        wanted = {self._settings.name_claim, self._settings.role_claim}
        if wanted - claims.keys() and discovery.userinfo_endpoint and tokens.access_token:
            claims = await self._user_claims(discovery.userinfo_endpoint, tokens.access_token, claims["sub"]) | claims
        return self._judge(claims)

    async def discover(self, *, again_after: float = KEPT_SECONDS) -> tuple[_Discovery, list[dict[str, Any]]]:
        """Return the discovery document and the keys, which are kept for a while. Raises IdentityProviderUnusable."""
        if self._known is None or self._clock.monotonic() - self._known[0] >= again_after:
            issuer = self._settings.issuer
            url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            discovery = _decoded(await self._fetch("GET", url), _Discovery, f"no discovery document at {url}")
            if discovery.issuer != issuer:
                raise IdentityProviderUnusable(
                    f"the identity provider calls itself {discovery.issuer[:NAME_MAX]!r}: write admin.oidc.issuer so"
                )
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"):
                _check_secure(name, getattr(discovery, name))
            keys = _decoded(await self._fetch("GET", discovery.jwks_uri), _KeySet, "no keys at its jwks_uri").keys
            self._known = self._clock.monotonic(), discovery, keys
        return self._known[1:]

    @property
    def _redirect_uri(self) -> str:
        return self._settings.public_url.rstrip("/") + RETURN_PATH

    async def _tokens(self, discovery: _Discovery, code: str, verifier: str) -> _Tokens:
        """Exchange the code (Core §3.1.3)."""
        client_id, client_secret = self._settings.client_id, self._settings.client_secret.reveal()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        headers = {}
        methods = discovery.token_endpoint_auth_methods_supported
        if "client_secret_post" in methods and "client_secret_basic" not in methods:
            form |= {"client_id": client_id, "client_secret": client_secret}
        else:
            pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"  # RFC 6749 §2.3.1
            headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        body = await self._fetch("POST", discovery.token_endpoint, headers=headers, data=form)
        return _decoded(body, _Tokens, "no id_token for the code")

    async def _claims(self, id_token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of an id_token, verified as Core §3.1.3.7 has it."""
        try:
            header = jwt.get_unverified_header(id_token)
        except (jwt.InvalidTokenError, RecursionError):
            raise _refused("it is not a JWT") from None
        if header.get("alg") not in ALGORITHMS:
            raise _refused(f"its algorithm is none of {', '.join(ALGORITHMS)}")
        kid = header.get("kid")
        _, keys = await self.discover()
        if not any(kid == key.get("kid") for key in keys):  # the keys may have been rotated
            _, keys = await self.discover(again_after=UNKNOWN_KEY_SECONDS)
        claims = self._verified(id_token, list(_usable(keys, kid, header["alg"])), header["alg"])
        now = self._clock.now()
        if not _is_time(claims["exp"]) or claims["exp"] + TOLERANCE <= now:
            raise _refused("it has expired; are the clocks of both machines right?")
        if not _is_time(claims["iat"]) or claims["iat"] - TOLERANCE > now:
            raise _refused("it is of the future; are the clocks of both machines right?")
        if claims.get("nonce") != nonce:
            raise _refused("it is of another sign-in (nonce)")
        # `azp` names the client that the token is for, among several audiences.
        if claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise _refused("it is for another client (azp)")
        return claims

    def _verified(self, id_token: str, keys: list[Any], algorithm: str) -> dict[str, Any]:
        problem = "its key is not among those at jwks_uri"
        for key in keys:
            try:
                return jwt.decode(
                    id_token,
                    key,
                    [algorithm],
                    audience=self._settings.client_id,
                    issuer=self._settings.issuer,
                    options=_CHECKED,
                )
            except (jwt.InvalidTokenError, RecursionError) as error:
                problem = _WRONG.get(type(error), "it cannot be read")
                if not isinstance(error, jwt.InvalidSignatureError):
                    break
        raise _refused(problem)

    async def _user_claims(self, url: str, access_token: str, subject: str) -> dict[str, Any]:
        """Return what the userinfo endpoint says of a person (Core §5.3)."""
        headers = {"Authorization": f"Bearer {access_token}"}
        claims = _decoded(await self._fetch("GET", url, headers=headers), dict[str, Any], "no claims at userinfo")
        if claims.get("sub") != subject:
            raise SignInRefused("the identity provider's userinfo is of another person: begin again")
        return claims

    def _judge(self, claims: dict[str, Any]) -> Person:
        if claims.get("email_verified") in (False, "false"):  # anybody could call themselves so
            claims = {name: value for name, value in claims.items() if name != "email"}
        settings = self._settings
        name, values = claims.get(settings.name_claim), claims.get(settings.role_claim)
        if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX or not name.isprintable():
            raise SignInRefused(
                f"the identity provider sends no claim {settings.name_claim} with your name, or an address that it has"
                " not verified: set admin.oidc.name_claim to another, or add the claim's scope to admin.oidc.scope"
            )
        if values is None:
            raise SignInRefused(
                f"the identity provider sends no claim {settings.role_claim}: set admin.oidc.role_claim to the one with"
                " groups or roles, or add the claim's scope to admin.oidc.scope"
            )
        listed = values if isinstance(values, list) else [values]
        given = {each for each in listed if isinstance(each, str)}
        if given.intersection(settings.operators):
            return Person(name, "operator")
        if given.intersection(settings.readers):
            return Person(name, "reader")
        raise SignInRefused(
            f"{name} may not use this interface: none of your {settings.role_claim} is in admin.oidc.operators or"
            " admin.oidc.readers"
        )

    async def _fetch(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, data: Mapping[str, str] | None = None
    ) -> bytes:
        """Return the body of a response with status 200. No cookies, no redirects. Raises SignInRefused where an OAuth
        error is sent."""
        settings = self._settings
        try:
            trusted = True if settings.ca_file is None else ssl.create_default_context(cafile=settings.ca_file)
        except OSError:
            raise IdentityProviderUnusable("admin.oidc.ca_file holds no certificate in PEM form") from None
        try:
            async with (
                asyncio.timeout(REQUEST_SECONDS),
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=trusted),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    headers={"Accept": "application/json", **(headers or {})},
                    proxy=None if settings.proxy is None else settings.proxy.reveal(),
                ) as session,
                session.request(method, url, data=data, allow_redirects=False) as response,
            ):
                body = b""
                while len(body) <= RESPONSE_BYTES and (piece := await response.content.readany()):
                    body += piece
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            problem = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
            raise IdentityProviderUnusable(
                f"the identity provider cannot be reached at {_shown(url)} ({problem}): check admin.oidc.issuer, proxy"
                " and ca_file; v3bridge doctor checks them, too"
            ) from error
        if response.status in (400, 401, 403) and data is not None:
            raise SignInRefused(_refusal(identity.oauth_error(body)))
        if response.status != 200 or len(body) > RESPONSE_BYTES:
            raise IdentityProviderUnusable(f"the identity provider sends HTTP {response.status} at {_shown(url)}")
        return body


def _decoded(body: bytes, kind: type[T], otherwise: str) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise IdentityProviderUnusable(f"the identity provider sends {otherwise}") from None


def _check_secure(name: str, url: str | None) -> None:
    try:
        config.SecureUrl((url or "https://none").partition("?")[0])
    except ValueError as error:
        raise IdentityProviderUnusable(f"the identity provider's {name} {error}") from None


def _usable(keys: list[dict[str, Any]], kid: str | None, algorithm: str) -> Iterator[Any]:
    """Yield the keys that may have made a signature."""
    for key in keys:
        if kid in (None, key.get("kid")) and key.get("use") != "enc" and key.get("alg", algorithm) == algorithm:
            try:
                yield jwt.PyJWK(key, algorithm).key
            except jwt.PyJWTError:  # of another type
                continue


def _is_time(claim: Any) -> bool:
    return isinstance(claim, int | float) and not isinstance(claim, bool)


def _refused(problem: str) -> SignInRefused:
    return SignInRefused(f"the identity provider's id_token is not accepted: {problem}")


def _refusal(code: str) -> str:
    if code in ("invalid_client", "unauthorized_client"):
        return f"the identity provider refuses this service ({code}): check admin.oidc.client_id and client_secret"
    return f"the identity provider refuses the sign-in ({code or 'no reason'}): begin again; each can be used once"


def _error_code(text: str | None) -> str:
    """Return an error code (RFC 6749 §4.1.2.1); other text is not shown."""
    return text if text is not None and re.fullmatch(r"[a-z_]{1,40}", text) else "an unknown error"


def _shown(url: str) -> str:
    return url.partition("?")[0]
