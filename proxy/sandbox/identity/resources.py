"""The identity service's endpoints beside the token endpoint, for programs: discovery document, key set, userinfo,
revocation, introspection.
"""

from aiohttp import web
from authlib.oidc.core import UserInfo

from proxy.sandbox import applications, user_directory
from proxy.sandbox.identity import credentials, discovery, forms, keys, protocol, scopes, tokens
from proxy.sandbox.identity.clients import Asked


class Resources:
    """The handlers."""

    def __init__(
        self,
        *,
        server: protocol.Server,
        known: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        issued: tokens.Tokens,
        ring: keys.KeyRing,
        issuer: str | None,
    ) -> None:
        self._server, self._known, self._users = server, known, users
        self._tokens, self._ring, self._issuer = issued, ring, issuer

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Userinfo by both of its methods."""
        router.add_get(discovery.DISCOVERY_PATH, self.discovery)
        router.add_get(discovery.JWKS_PATH, self.jwks)
        router.add_get(discovery.USERINFO_PATH, self.userinfo)
        router.add_post(discovery.USERINFO_PATH, self.userinfo)
        router.add_post(discovery.REVOCATION_PATH, self.revocation)
        router.add_post(discovery.INTROSPECTION_PATH, self.introspection)

    async def discovery(self, request: web.Request) -> web.Response:
        """The discovery document."""
        issuer = forms.issuer(request, self._issuer)
        return forms.reply(discovery.document(issuer, self._known.all), 200, store=True)

    async def jwks(self, _request: web.Request) -> web.Response:
        """The public keys."""
        return forms.reply(self._ring.jwks(), 200, store=True)

    async def userinfo(self, request: web.Request) -> web.Response:
        """What the token's scopes let be known of its user (OpenID Connect Core §5.3); 401 for a token that is not
        good, 403 for one that is not for this."""
        try:
            access = self._tokens.access(await _bearer(request))
        except (tokens.InvalidTokenError, tokens.ExpiredTokenError):
            return _challenge(401, "invalid_token")
        user = self._users.by_id(access.user or "")
        if scopes.OPENID not in access.scopes:
            return _challenge(403, "insufficient_scope")
        if user is None or self._known.by_client_id(access.client_id) is None:
            return _challenge(401, "invalid_token")
        return forms.reply(_claims(user).filter(" ".join(access.scopes)), 200)

    async def revocation(self, request: web.Request) -> web.Response:
        """200 whether there was anything to revoke or not (RFC 7009 §2.2)."""
        return await self._endpoint(request, "revocation", 400)

    async def introspection(self, request: web.Request) -> web.Response:
        """What a token says (RFC 7662 §2.2)."""
        return await self._endpoint(request, "introspection", 401)

    async def _endpoint(self, request: web.Request, name: str, unknown: int) -> web.Response:
        """One of Authlib's; `unknown` is the status for a client that nobody knows."""
        form = await forms.form(request)
        if form is None:
            return forms.reply({"error": "invalid_request"}, 400)
        try:
            given = credentials.given(form, request.headers.get("Authorization"))
            account = credentials.authenticate(self._known.by_client_id(given.client_id), given)
        except credentials.RefusedError as refused:
            headers = {"WWW-Authenticate": "Basic"} if unknown == 401 else None
            return forms.reply({"error": refused.code}, unknown, headers)
        asked = Asked("POST", tuple(form.items()), forms.issuer(request, self._issuer), account)
        answer = self._server.endpoint(name, asked)
        return forms.reply(answer.body, answer.status)


async def _bearer(request: web.Request) -> str:
    """RFC 6750 §2.1 and §2.2; empty where there is none."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return token.strip()
    return (await forms.form(request) or {}).get("access_token", "")


def _claims(user: user_directory.SandboxUser) -> UserInfo:
    return UserInfo(
        sub=user.id,
        name=user.name,
        given_name=user.given_name,
        family_name=user.family_name,
        preferred_username=user.email,
        email=user.email,
        email_verified=True,
    )


def _challenge(status: int, error: str) -> web.Response:
    return forms.reply({"error": error}, status, {"WWW-Authenticate": f'Bearer error="{error}"'})
