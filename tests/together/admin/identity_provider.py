"""An identity provider on a loopback socket (OpenID Connect), written from the specifications alone: its user is always
signed in. Tests change what it says, and how it signs that."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode

from aiohttp import web
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from support import served

from proxy.kit.clock import Clock

CLIENT_ID, CLIENT_SECRET = "v3bridge", "the-client-secret-of-the-tests"


class IdentityProvider:
    """`claims` replace those of the id_token (None: left out), `header` its header; `user_claims` are the userinfo's.
    `signs_with`: "RS256", "none", "HS256" with the public key as secret, or "stranger", a key that is not published.
    `discovery` replaces entries of the document, `error` is sent instead of a code. `requests`: paths so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._key = rsa.generate_private_key(65537, 2048)
        self.kid = "first"
        self.issuer = ""
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.user_claims: dict[str, Any] | None = None
        self.signs_with = "RS256"
        self.discovery: dict[str, Any] = {}
        self.error = ""
        self.requests: list[str] = []
        self.tokens: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}

    def rotate_key(self) -> None:
        self._key, self.kid = rsa.generate_private_key(65537, 2048), "second"

    @web.middleware
    async def record(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(request.path)
        response: web.StreamResponse = await handler(request)
        return response

    async def document(self, _: web.Request) -> web.Response:
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        more = {} if self.user_claims is None else {"userinfo_endpoint": f"{self.issuer}/userinfo"}
        urls = {name: self.issuer + path for name, path in paths.items()}
        return web.json_response({"issuer": self.issuer, **urls, **more, **self.discovery})

    async def keys(self, _: web.Request) -> web.Response:
        public = self._key.public_key().public_numbers()
        size = (public.n.bit_length() + 7) // 8
        numbers = {"n": _base64(public.n.to_bytes(size)), "e": _base64(public.e.to_bytes(3))}
        return web.json_response({"keys": [{"kty": "RSA", "use": "sig", "kid": self.kid, **numbers}]})

    async def authorize(self, request: web.Request) -> web.Response:
        """Send the browser back with a code, or with an error."""
        asked = dict(request.query)
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe()
        self._codes[code] = asked
        sent = {"error": self.error} if self.error else {"code": code, "iss": self.issuer}
        location = f"{asked['redirect_uri']}?{urlencode({**sent, 'state': asked['state']})}"
        return web.Response(status=302, headers={"Location": location})

    async def token(self, request: web.Request) -> web.Response:
        """Exchange a code, once, for who can show its verifier and the client's secret."""
        form = {name: values[0] for name, values in parse_qs(await request.text()).items()}
        user, _, password = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).partition(b":")
        if (unquote_plus(user.decode()), unquote_plus(password.decode())) != (CLIENT_ID, CLIENT_SECRET):
            return web.json_response({"error": "invalid_client"}, status=401)
        asked = self._codes.pop(form["code"], None)
        challenge = _base64(hashlib.sha256(form["code_verifier"].encode()).digest())
        if asked is None or (challenge, form["redirect_uri"]) != (asked["code_challenge"], asked["redirect_uri"]):
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = self._id_token(asked["nonce"])
        self.tokens.append(token)
        return web.json_response({"id_token": token, "access_token": "an-access-token", "token_type": "Bearer"})

    async def userinfo(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer an-access-token"
        return web.json_response({"sub": "user-1", **(self.user_claims or {})})

    def _id_token(self, nonce: str) -> str:
        now = int(self._clock.now())
        claims = {
            "iss": self.issuer,
            "sub": "user-1",
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            "email": "ada@example.com",
            "groups": ["staff", "v3-operators"],
            **self.claims,
        }
        algorithm = "RS256" if self.signs_with == "stranger" else self.signs_with
        header = {"alg": algorithm, "kid": self.kid, **self.header}
        left = {name: value for name, value in claims.items() if value is not None}
        signed = f"{_base64(json.dumps(header).encode())}.{_base64(json.dumps(left).encode())}"
        return f"{signed}.{_base64(self._signature(signed.encode()))}"

    def _signature(self, signed: bytes) -> bytes:
        if self.signs_with == "none":
            return b""
        if self.signs_with == "HS256":
            form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            return hmac.digest(self._key.public_key().public_bytes(*form), signed, "sha256")
        key = rsa.generate_private_key(65537, 2048) if self.signs_with == "stranger" else self._key
        return key.sign(signed, padding.PKCS1v15(), hashes.SHA256())


@asynccontextmanager
async def running(clock: Clock) -> AsyncIterator[IdentityProvider]:
    """Serve while the block runs."""
    provider = IdentityProvider(clock)
    app = web.Application(middlewares=[provider.record])
    app.router.add_get("/.well-known/openid-configuration", provider.document)
    app.router.add_get("/keys", provider.keys)
    app.router.add_get("/authorize", provider.authorize)
    app.router.add_post("/token", provider.token)
    app.router.add_get("/userinfo", provider.userinfo)
    async with served.on_loopback(app) as provider.issuer:
        yield provider


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
