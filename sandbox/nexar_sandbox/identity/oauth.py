"""The OAuth protocol of the identity service, without HTTP: client authentication, token requests, and authorization
requests with PKCE (RFC 6749, RFC 7636, OpenID Connect Core; contract graphql.md §4).

A code, verifier or password that is bad or missing is `invalid_grant`, as in the real service.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus, urlencode

from nexar_sandbox import applications, user_directory
from nexar_sandbox.identity import authorizations, tokens

REFRESH_TOKEN = "refresh_token"  # noqa: S105 (a grant type)
USER_FLOWS = frozenset({applications.AUTHORIZATION_CODE, applications.PASSWORD})
PROMPTS = frozenset({"none", "login", "consent", "select_account"})
# Scopes of domains belong to the application; the others are about a user and need a sign-in.
OPENID, OFFLINE = "openid", "offline_access"
# Descriptions on the consent page.
ABOUT_USERS = {
    OPENID: "know who you are",
    "profile": "see your name",
    "email": "see your e-mail address",
    "user.access": "act for you in the query service",
    OFFLINE: "keep this access while you are away",
}
DOMAINS = {
    applications.SUPPLY_SCOPE: "look up parts, offers and prices",
    "design.domain": "read and change your designs",
}
ALL_SCOPES = {**ABOUT_USERS, **DOMAINS}
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


class OAuthError(Exception):
    """An error of a request, with its code (RFC 6749 §4.1.2.1, §5.2) and a description."""

    def __init__(self, code: str, description: str = "") -> None:
        super().__init__(code)
        self.code, self.description = code, description


class RedirectedError(OAuthError):
    """An error of an authorization request whose redirect URI is valid: the application is told."""

    def __init__(self, code: str, description: str, redirect_uri: str, state: str | None) -> None:
        super().__init__(code, description)
        self.redirect_uri, self.state = redirect_uri, state


def read_credentials(form: Mapping[str, str], authorization: str | None) -> tuple[str, str]:
    """Return client id and secret of a request, not verified: from the Basic header if there is one, else from the
    form. Raises OAuthError."""
    if authorization and authorization[:6].lower() == "basic ":
        try:
            text = base64.b64decode(authorization[6:].strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise OAuthError("invalid_client") from None
        client_id, _, secret = text.partition(":")
        return unquote_plus(client_id), unquote_plus(secret)  # form-encoded (RFC 6749 §2.3.1)
    client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
    if not client_id or not secret:
        raise OAuthError("invalid_client")
    return client_id, secret


def authenticate(application: applications.SandboxApplication | None, secret: str) -> applications.SandboxApplication:
    """Return the application if the secret is its own. Raises OAuthError."""
    if application is None or not hmac.compare_digest(application.client_secret.encode(), secret.encode()):
        raise OAuthError("invalid_client")
    return application


def code_challenge(verifier: str) -> str:
    """Return PKCE's challenge of a verifier, by S256."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A valid authorization request. `prompt`: the pages that it requires, or none."""

    application: applications.SandboxApplication
    redirect_uri: str
    scopes: tuple[str, ...]
    code_challenge: str
    state: str | None
    nonce: str | None
    prompt: frozenset[str]

    def error(self, code: str, description: str = "") -> RedirectedError:
        return RedirectedError(code, description, self.redirect_uri, self.state)


@dataclass(frozen=True, slots=True)
class OAuthServer:
    """The protocol on the stores of the sandbox."""

    registry: applications.ApplicationRegistry
    users: user_directory.UserDirectory
    token_issuer: tokens.TokenIssuer
    authorization_store: authorizations.AuthorizationStore

    def token(
        self,
        application: applications.SandboxApplication,
        form: Mapping[str, str],
        issuer: str,
        sign_in: tokens.SignIn | None,
    ) -> dict[str, Any]:
        """Return the body of the response to a token request of an authenticated application. `sign_in`: the user of
        the password grant, if the password is right. Raises OAuthError."""
        kind = form.get("grant_type", "")
        if kind not in applications.FLOWS | {REFRESH_TOKEN}:
            raise OAuthError("unsupported_grant_type")
        if not application.flows & (USER_FLOWS if kind == REFRESH_TOKEN else {kind}):
            raise OAuthError("unauthorized_client")
        if kind == applications.CLIENT_CREDENTIALS:
            return self._issue(application, _granted(application, form.get("scope"), user=False), issuer, None)
        if kind == applications.AUTHORIZATION_CODE:
            authorization = self._redeem(application, form)
        elif kind == REFRESH_TOKEN:
            return self._refresh(application, form, issuer)
        else:
            if sign_in is None:
                raise OAuthError("invalid_grant")
            names = _granted(application, form.get("scope"), user=True)
            authorization = authorizations.UserAuthorization(application.client_id, sign_in, names)
        return self._issue(application, authorization.scopes, issuer, authorization)

    def token_of(
        self, application: applications.SandboxApplication, sign_in: tokens.SignIn, issuer: str
    ) -> dict[str, Any]:
        """Return a token response for a user of the application's organization, without asking for consent: the user's
        token, if it gives more access than the application's. Raises OAuthError."""
        by_user = applications.AUTHORIZATION_CODE in application.flows
        if by_user and ("design" in application.domains or applications.CLIENT_CREDENTIALS not in application.flows):
            names = (OPENID, "profile", "email", "user.access", *application.scopes)
            authorization = authorizations.UserAuthorization(application.client_id, sign_in, names)
            return self._issue(application, names, issuer, authorization)
        return self.token(application, {"grant_type": applications.CLIENT_CREDENTIALS}, issuer, None)

    def _redeem(
        self, application: applications.SandboxApplication, form: Mapping[str, str]
    ) -> authorizations.UserAuthorization:
        issued = self.authorization_store.code(form.get("code", ""))
        if issued is None or issued.authorization.client_id != application.client_id:
            raise OAuthError("invalid_grant")
        # A code is valid once, even if the rest of the request is invalid; it is kept to detect reuse.
        issued.used = True
        has_verifier = issued.code_challenge == code_challenge(form.get("code_verifier", ""))
        if not has_verifier or form.get("redirect_uri") != issued.redirect_uri:
            raise OAuthError("invalid_grant")
        return issued.authorization

    def _refresh(
        self, application: applications.SandboxApplication, form: Mapping[str, str], issuer: str
    ) -> dict[str, Any]:
        """Scopes may be reduced for one access token, not extended."""
        if not form.get(REFRESH_TOKEN):
            raise OAuthError("invalid_request")
        issued = self.authorization_store.refresh_token(form[REFRESH_TOKEN])
        if issued is None or issued.authorization.client_id != application.client_id:
            raise OAuthError("invalid_grant")
        authorization = issued.authorization
        names = tuple(dict.fromkeys(form.get("scope", "").split())) or authorization.scopes
        if not set(names) <= set(authorization.scopes):
            raise OAuthError("invalid_scope")
        issued.used = True
        return self._issue(application, names, issuer, authorization)

    def _issue(
        self,
        application: applications.SandboxApplication,
        names: tuple[str, ...],
        issuer: str,
        authorization: authorizations.UserAuthorization | None,
    ) -> dict[str, Any]:
        """Return the body of a token response, its fields in the order of the real service (contract graphql.md
        §4.1)."""
        client_id, jti, sign_in = application.client_id, self.token_issuer.new_id(), None
        if authorization is not None:
            sign_in = authorization.sign_in
            authorization.access_tokens.append(jti)
        token = self.token_issuer.issue(client_id, names, issuer, jti=jti, sign_in=sign_in)
        body = {"access_token": token, "expires_in": self.token_issuer.lifetime, "token_type": "Bearer"}
        if authorization is not None and OPENID in names:
            id_token = self.token_issuer.identify(
                client_id, issuer, authorization.sign_in, nonce=authorization.nonce, access_token=token
            )
            body = {"id_token": id_token, **body}
        if authorization is not None and OFFLINE in authorization.scopes:
            body[REFRESH_TOKEN] = self.authorization_store.new_refresh_token(authorization)
        return {**body, "scope": " ".join(names)}

    def read_authorization(self, pairs: tuple[tuple[str, str], ...]) -> AuthorizationRequest:
        """Validate an authorization request. Raises OAuthError; RedirectedError once the redirect URI is valid."""
        data = dict(pairs)
        if len(data) < len(pairs):
            raise OAuthError("invalid_request", "A parameter is given twice.")
        application = self.registry.by_client_id(data.get("client_id", ""))
        if application is None:
            raise OAuthError("invalid_client", "There is no application with this client_id.")
        redirect_uri = data.get("redirect_uri", "")
        # Compared exactly (RFC 9700 §4.1.3).
        if redirect_uri not in application.redirect_uris:
            raise OAuthError("invalid_request", "The redirect_uri is not one of the application's.")
        try:
            names = _check(application, data)
        except OAuthError as error:
            raise RedirectedError(error.code, error.description, redirect_uri, data.get("state")) from error
        prompt = frozenset(data.get("prompt", "").split())
        challenge = data["code_challenge"]
        return AuthorizationRequest(
            application, redirect_uri, names, challenge, data.get("state"), data.get("nonce"), prompt
        )

    def issue_code(self, request: AuthorizationRequest, sign_in: tokens.SignIn) -> str:
        """Return a code for the user's sign-in."""
        client_id = request.application.client_id
        authorization = authorizations.UserAuthorization(client_id, sign_in, request.scopes, request.nonce)
        issued = authorizations.Issued(authorization, request.redirect_uri, request.code_challenge)
        return self.authorization_store.new_code(issued)


def _check(application: applications.SandboxApplication, data: Mapping[str, str]) -> tuple[str, ...]:
    """Return the scopes of an authorization request; what is not supported is refused, not ignored (OpenID Connect Core
    §3.1.2.1, §6). Raises OAuthError."""
    for name in ("request", "request_uri"):
        if name in data:
            raise OAuthError(f"{name}_not_supported")
    if "max_age" in data:
        raise OAuthError("invalid_request", "max_age is not supported.")
    if data.get("response_mode", "query") != "query":
        raise OAuthError("invalid_request", "The response_mode must be query.")
    if data.get("response_type") != "code":
        raise OAuthError("unsupported_response_type")
    if applications.AUTHORIZATION_CODE not in application.flows:
        raise OAuthError("unauthorized_client")
    if data.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(data.get("code_challenge", "")):
        raise OAuthError("invalid_request", "A code_challenge by S256 is required.")
    prompt = set(data.get("prompt", "").split())
    if not prompt <= PROMPTS or ("none" in prompt and len(prompt) > 1):
        raise OAuthError("invalid_request", "The prompt is not valid.")
    return _granted(application, data.get("scope"), user=True)


def _granted(application: applications.SandboxApplication, requested: str | None, *, user: bool) -> tuple[str, ...]:
    """Return the scopes to grant: the requested ones; if none, all of an application without a user (contract
    graphql.md §4.3). Raises OAuthError for one that is not allowed, and for a user's grant of none."""
    names = tuple(dict.fromkeys((requested or "").split()))
    available = {*application.scopes, *(ABOUT_USERS if user else ())}
    if not available.issuperset(names) or (user and not names):
        raise OAuthError("invalid_scope")
    return names or application.scopes


def redirect_address(redirect_uri: str, parameters: Mapping[str, str | None]) -> str:
    """Return the redirect URI with the parameters that are not None."""
    query = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{query}"
