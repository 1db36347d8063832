"""Grants of the token endpoint: Authlib's, on the sandbox's stores (contract graphql.md §4).

Client credentials, authorization code with PKCE, refresh token and password, and their OpenID Connect extensions.
"""

from typing import Any

from authlib.oauth2.rfc6749 import AccessDeniedError, BaseGrant, InvalidRequestError, InvalidScopeError
from authlib.oauth2.rfc6749 import grants as authlib_grants
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.errors import RequestNotSupportedError, RequestURINotSupportedError
from authlib.oidc.core.grants import OpenIDToken
from authlib.oidc.core.grants.util import validate_request_prompt

from nexar_sandbox.identity import authorization_server, authorizations, scopes, tokens
from nexar_sandbox.identity.authorization_server import OAuthRequest
from nexar_sandbox.identity.clients import OAuthClient

CHALLENGE_METHOD = "S256"
RESPONSE_MODE = "query"
# Digits of max_age: centuries.
MAX_AGE_DIGITS = 10


class Pkce(CodeChallenge):
    """PKCE (RFC 7636), required for every application, S256 only."""

    SUPPORTED_CODE_CHALLENGE_METHOD = [CHALLENGE_METHOD]  # noqa: RUF012 (Authlib's)

    def validate_code_challenge(self, grant: Any, redirect_uri: Any) -> None:
        """Raise InvalidRequestError if the challenge is missing or not S256."""
        data = grant.request.payload.data
        if not data.get("code_challenge") or data.get("code_challenge_method") != CHALLENGE_METHOD:
            raise InvalidRequestError(f"A code_challenge by {CHALLENGE_METHOD} is required.")
        super().validate_code_challenge(grant, redirect_uri)

    def get_authorization_code_challenge_method(self, _code: authorizations.IssuedCode) -> str:
        return CHALLENGE_METHOD


class IdTokens(OpenIDToken):
    """Issues an id_token with each access token of the scope openid."""

    def __init__(self, token_issuer: tokens.TokenIssuer) -> None:
        self._tokens = token_issuer

    def encode_id_token(self, token: dict[str, Any], request: OAuthRequest) -> str:
        """Return the id_token. It has `sub` only; other claims are at the userinfo endpoint."""
        granted, protocol_request = request.granted, request.protocol_request
        if granted is None:
            raise InvalidRequestError("There is no user for an id_token.")
        return self._tokens.identify(
            granted.client_id,
            protocol_request.issuer,
            granted.sign_in,
            nonce=granted.nonce,
            access_token=token["access_token"],
        )


def check_authorization_requests(grant: Any) -> None:
    """Refuse unsupported parameters instead of ignoring them (OpenID Connect Core §3.1.2.1, §6), and evaluate `prompt`
    for all scopes (§3.1.2.1)."""
    grant.register_hook("after_validate_authorization_request_payload", _check_parameters)
    grant.register_hook("after_validate_consent_request", validate_request_prompt)


def max_age(text: str | None) -> int | None:
    """Seconds of the parameter; None if it is missing or not a number."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= MAX_AGE_DIGITS):
        return None
    return int(text)


def _check_parameters(grant: Any, _redirect_uri: Any) -> None:
    data = grant.request.payload.data
    if "request" in data:
        raise RequestNotSupportedError
    if "request_uri" in data:
        raise RequestURINotSupportedError
    if data.get("response_mode", RESPONSE_MODE) != RESPONSE_MODE:
        raise InvalidRequestError(f"The response_mode must be {RESPONSE_MODE}.")
    if "max_age" in data and max_age(data["max_age"]) is None:
        raise InvalidRequestError("The max_age must be a number of seconds.")


class TokenGrant(BaseGrant):
    """Base of all grants. `BY_USERS`: a user authorizes the application."""

    BY_USERS = True
    request: OAuthRequest
    server: authorization_server.OAuthServer

    def validate_requested_scope(self) -> None:
        """Raise InvalidScopeError for a scope that the application may not have."""
        client, requested = self.request.client, self.request.payload.data.get("scope")
        if client is None or scopes.granted(client.application, requested, user=self.BY_USERS) is None:
            raise InvalidScopeError

    def generate_token(self, user: Any = None, scope: str | None = None, *_unused: Any, **_unused_options: Any) -> Any:
        """Return the body of the token response. `user` is a sign-in."""
        self.request.granted = self.authorization(user, scope)
        return self.server.issue(self.request, tuple(dict.fromkeys((scope or "").split())))

    def authorization(self, _sign_in: Any, _scope: str | None) -> authorizations.UserAuthorization | None:
        """Return the user authorization of the token; None without a user."""
        return None


class ClientCredentialsGrant(TokenGrant, authlib_grants.ClientCredentialsGrant):
    """RFC 6749 §4.4."""

    BY_USERS = False


class AuthorizationCodeGrant(TokenGrant, authlib_grants.AuthorizationCodeGrant):
    """RFC 6749 §4.1."""

    def save_authorization_code(self, code: str, request: OAuthRequest) -> None:
        data = request.payload.data
        authorization = authorizations.UserAuthorization(
            data["client_id"], _signed_in(request), tuple(dict.fromkeys(data["scope"].split())), data.get("nonce")
        )
        issued_code = authorizations.IssuedCode(authorization, data["redirect_uri"], data["code_challenge"])
        self.server.authorization_store.keep_code(code, issued_code)

    def query_authorization_code(self, code: str, client: OAuthClient) -> authorizations.IssuedCode | None:
        """Return the code if it was issued to this application. A code is valid once, even if the rest of the request
        is invalid, as in IdentityServer; it is kept to detect reuse."""
        issued_code = self.server.authorization_store.code(code)
        if issued_code is None or issued_code.authorization.client_id != client.get_client_id():
            return None
        issued_code.used = True
        return issued_code if self.server.is_known(issued_code.authorization.sign_in) else None

    def delete_authorization_code(self, _authorization_code: authorizations.IssuedCode) -> None:
        """No-op: `query_authorization_code` has marked it as used."""

    def authenticate_user(self, authorization_code: authorizations.IssuedCode) -> tokens.SignIn:
        return authorization_code.authorization.sign_in

    def authorization(self, _sign_in: Any, _scope: str | None) -> authorizations.UserAuthorization | None:
        code = self.request.authorization_code
        return code.authorization if isinstance(code, authorizations.IssuedCode) else None


class RefreshTokenGrant(TokenGrant, authlib_grants.RefreshTokenGrant):
    """RFC 6749 §6, with a new refresh token each time."""

    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> authorizations.IssuedRefreshToken | None:
        issued_token = self.server.authorization_store.refresh_token(refresh_token)
        return issued_token if issued_token and self.server.is_known(issued_token.authorization.sign_in) else None

    def authenticate_user(self, refresh_token: authorizations.IssuedRefreshToken) -> tokens.SignIn:
        return refresh_token.authorization.sign_in

    def revoke_old_credential(self, refresh_token: authorizations.IssuedRefreshToken) -> None:
        """Mark the refresh token as used."""
        refresh_token.used = True

    def authorization(self, _sign_in: Any, _scope: str | None) -> authorizations.UserAuthorization | None:
        issued_token = self.request.refresh_token
        return issued_token.authorization if isinstance(issued_token, authorizations.IssuedRefreshToken) else None


class PasswordGrant(TokenGrant, authlib_grants.ResourceOwnerPasswordCredentialsGrant):
    """RFC 6749 §4.3. The endpoint has verified the password, which takes too long for this synchronous code."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

    def authenticate_user(self, _username: str, _password: str) -> tokens.SignIn | None:
        return self.request.protocol_request.sign_in

    def authorization(self, sign_in: tokens.SignIn, scope: str | None) -> authorizations.UserAuthorization | None:
        client_id = self.request.client.get_client_id() if self.request.client else ""
        return authorizations.UserAuthorization(client_id, sign_in, tuple((scope or "").split()))


def _signed_in(request: OAuthRequest) -> tokens.SignIn:
    if not isinstance(request.user, tokens.SignIn):
        raise AccessDeniedError
    return request.user


def register_grants(server: authorization_server.OAuthServer) -> None:
    """Register all grants. An application's `flows` limit which it may use."""
    signing = IdTokens(server.token_issuer)
    server.register_grant(ClientCredentialsGrant)
    server.register_grant(AuthorizationCodeGrant, [Pkce(), signing, check_authorization_requests])
    server.register_grant(RefreshTokenGrant, [signing])
    server.register_grant(PasswordGrant, [signing])
