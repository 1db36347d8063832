"""The authorization server: Authlib's protocol code on the sandbox's stores, with token revocation (RFC 7009),
introspection (RFC 7662) and session end (OpenID Connect RP-Initiated Logout). No I/O.

Clients and users are authenticated before (`clients.py`, `login.py`). Errors are renamed where the real service differs
from Authlib.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer, InvalidClientError
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oidc.rpinitiated import EndSessionEndpoint, EndSessionRequest

from proxy.sandbox import applications, user_directory
from proxy.sandbox.identity import authorizations, keys, scopes, tokens
from proxy.sandbox.identity.clients import OAuthClient, OAuthRequest, ProtocolRequest

# A bad code, verifier or password is invalid_grant even where it is missing (contract graphql.md §4.1).
INVALID_GRANT_TYPES = frozenset({"authorization_code", "password"})


class ProtocolResponse(NamedTuple):
    """A status, a JSON object, and headers: a redirect has a Location."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]


class ConsentRequest(Protocol):
    """A validated authorization request. `prompt`: the page that has to be shown, if any."""

    request: OAuthRequest
    redirect_uri: str
    prompt: str | None

    @property
    def client(self) -> Any:
        """A `Client`."""


class OAuthServer(AuthorizationServer):
    """Authlib's server. Grants and endpoints are registered by `service.py`."""

    def __init__(
        self,
        known: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        issued: tokens.TokenIssuer,
        kept: authorizations.AuthorizationStore,
    ) -> None:
        super().__init__()
        self._known, self._users, self.issued, self.kept = known, users, issued, kept

    def query_client(self, client_id: str) -> OAuthClient | None:
        """The application with this client id."""
        application = self._known.by_client_id(client_id)
        return None if application is None else OAuthClient(application)

    def authenticate_client(self, request: OAuthRequest, _methods: object, _endpoint: str = "token") -> OAuthClient:
        """The authenticated client."""
        if request.asked.application is None:
            raise InvalidClientError
        return OAuthClient(request.asked.application)

    def create_oauth2_request(self, request: ProtocolRequest | OAuthRequest) -> OAuthRequest:
        """Wrap the request for Authlib."""
        return request if isinstance(request, OAuthRequest) else OAuthRequest(request)

    def handle_response(self, status: int, body: Any, headers: Any) -> ProtocolResponse:
        """The response as a value."""
        return ProtocolResponse(status, dict(body or {}), dict(headers))

    def handle_error_response(self, request: OAuthRequest, error: OAuth2Error) -> ProtocolResponse:
        """The error as a redirect, or as a body like that of the real service."""
        if error.redirect_uri:
            return self.handle_response(*error(None))
        code = error.error
        if code == "invalid_request" and request.payload.grant_type in INVALID_GRANT_TYPES:
            code = "invalid_grant"
        return ProtocolResponse(400, {"error": code}, {})

    def token(self, asked: ProtocolRequest) -> ProtocolResponse:
        """Response of the token endpoint."""
        answer: ProtocolResponse = self.create_token_response(asked)  # type: ignore[assignment]
        return answer

    def endpoint(self, name: str, asked: ProtocolRequest) -> ProtocolResponse:
        """Response of the endpoint with this name."""
        answer: ProtocolResponse = self.create_endpoint_response(name, asked)  # type: ignore[no-untyped-call]
        return answer

    def consent(self, asked: ProtocolRequest) -> ConsentRequest:
        """Validate an authorization request. Raises OAuth2Error, or ValueError for texts that it cannot hold."""
        grant: ConsentRequest = self.get_consent_grant(asked, end_user=asked.sign_in)  # type: ignore[no-untyped-call]
        return grant

    def finish(self, grant: ConsentRequest, sign_in: tokens.SignIn | None) -> ProtocolResponse:
        """The redirect with a code for the user's sign-in; None: access denied."""
        answer: ProtocolResponse = self.create_authorization_response(grant.request, grant_user=sign_in, grant=grant)  # type: ignore[assignment]
        return answer

    def sign_out(self, asked: ProtocolRequest) -> EndSessionRequest:
        """Validate an end-session request. Raises as `consent` does."""
        found = self.validate_endpoint_request("end_session", asked)
        if not isinstance(found, EndSessionRequest):
            raise TypeError("end_session is registered with another endpoint")
        return found

    def save_token(self, token: object, request: object) -> None:
        """No-op: tokens are self-contained."""

    def send_signal(self, name: object, *args: object, **kwargs: object) -> None:
        """No-op: signals are not used."""

    def is_known(self, sign_in: tokens.SignIn) -> bool:
        """Whether the user still exists."""
        return self._users.by_id(sign_in.user) is not None

    def issue(self, request: OAuthRequest, names: tuple[str, ...]) -> dict[str, Any]:
        """The body of a token response, without an id_token."""
        if request.client is None:
            raise InvalidClientError
        asked, application, authorisation = request.asked, request.client.application, request.granted
        jti, granted = self.issued.new_id(), names or application.scopes
        token = self.issued.issue(
            application.client_id,
            granted,
            asked.issuer,
            jti=jti,
            sign_in=authorisation.sign_in if authorisation else None,
            ahead=asked.ahead,
            endless=asked.endless,
        )
        body: dict[str, Any] = {"access_token": token, "expires_in": self.issued.lifetime, "token_type": "Bearer"}
        if authorisation is not None:
            self.kept.note(authorisation, jti)
            if scopes.OFFLINE in authorisation.scopes:
                body["refresh_token"] = self.kept.new_refresh_token(authorisation)
        return body | {"scope": " ".join(granted)}


@dataclass(frozen=True, slots=True)
class FoundToken:
    """A valid token: access or refresh token."""

    access: tokens.AccessToken | None = None
    refresh: authorizations.IssuedRefreshToken | None = None

    def check_client(self, client: OAuthClient) -> bool:
        """Whether the token belongs to this application."""
        if self.refresh is not None:
            return self.refresh.check_client(client)
        return self.access is not None and self.access.client_id == client.get_client_id()

    def is_expired(self) -> bool:
        """False: only valid tokens are found."""
        return False

    def is_revoked(self) -> bool:
        """False: only valid tokens are found."""
        return False


def find_token(server: OAuthServer, text: str) -> FoundToken | None:
    """The token if it is valid."""
    try:
        return FoundToken(access=server.issued.access(text))
    except (tokens.InvalidTokenError, tokens.ExpiredTokenError):
        refresh = server.kept.look_up(text)
        return None if refresh is None else FoundToken(refresh=refresh)


class TokenRevocation(RevocationEndpoint):
    """Revokes an access token; of a refresh token, the whole authorization."""

    server: OAuthServer

    def query_token(self, token_string: str, _token_type_hint: str | None) -> FoundToken | None:
        """The token, ignoring the hint."""
        return find_token(self.server, token_string)

    def revoke_token(self, token: FoundToken, _request: OAuthRequest) -> None:
        """Revoke the token."""
        if token.refresh is not None:
            self.server.kept.end(token.refresh.authorisation)
        if token.access is not None:
            self.server.issued.end_id(token.access.jti)


class TokenIntrospection(IntrospectionEndpoint):
    """Introspection of an application's own tokens."""

    server: OAuthServer

    def query_token(self, token_string: str, _token_type_hint: str | None) -> FoundToken | None:
        """The token, ignoring the hint."""
        return find_token(self.server, token_string)

    def check_permission(self, token: FoundToken, client: OAuthClient, _request: OAuthRequest) -> bool:
        """Whether the token belongs to this application."""
        return token.check_client(client)

    def introspect_token(self, token: FoundToken) -> dict[str, Any]:
        """The response with the token's claims."""
        if token.refresh is not None:
            kept = token.refresh.authorisation
            said = {"client_id": kept.client_id, "sub": kept.sign_in.user, "exp": int(token.refresh.expires)}
            return {"active": True, **said, "scope": token.refresh.get_scope()}
        said = {} if token.access is None else _introspected_claims(token.access)
        return {"active": True, **said}


class SessionEnd(EndSessionEndpoint):
    """Validates logout requests; `login.py` ends the session."""

    def __init__(self, ring: keys.KeyRing) -> None:
        super().__init__()
        self._ring = ring

    def get_server_jwks(self) -> Any:
        """The keys that verify an id_token_hint."""
        return self._ring.jwks()

    def get_algorithms(self) -> list[str]:
        """Always RS256."""
        return ["RS256"]

    def end_session(self, end_session_request: EndSessionRequest) -> None:
        """No-op: `login.py` ends the browser session."""


def register_token_endpoints(server: OAuthServer, ring: keys.KeyRing) -> None:
    """Register all token endpoints."""
    server.register_endpoint(TokenRevocation)
    server.register_endpoint(TokenIntrospection)
    server.register_endpoint(SessionEnd(ring))


def _introspected_claims(access: tokens.AccessToken) -> dict[str, Any]:
    said = {
        "client_id": access.client_id,
        "sub": access.user,
        "iss": access.issuer,
        "iat": access.issued,
        "exp": access.expires,
        "jti": access.jti,
        "scope": " ".join(access.scopes),
        "token_type": "Bearer",
    }
    return {name: value for name, value in said.items() if value is not None}
