"""The authorization server: Authlib's protocol code on the sandbox's stores, with token revocation (RFC 7009),
introspection (RFC 7662) and session end (OpenID Connect RP-Initiated Logout). No I/O.

Clients and users are authenticated before (`clients.py`, `login.py`). Errors are renamed where the real service differs
from Authlib.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer, InvalidClientError, OAuth2Payload, OAuth2Request
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oidc.rpinitiated import EndSessionEndpoint, EndSessionRequest

from nexar_sandbox import applications, user_directory
from nexar_sandbox.identity import authorizations, keys, scopes, tokens
from nexar_sandbox.identity.clients import OAuthClient, ProtocolRequest

# Authlib refuses requests without TLS, which the sandbox has not. Nothing else reads the address.
ADDRESS = "https://sandbox/"
# A bad code, verifier or password is invalid_grant even where it is missing (contract graphql.md §4.1).
INVALID_GRANT_TYPES = frozenset({"authorization_code", "password"})


class FormPayload(OAuth2Payload):
    """Query or form of a request; of repeated parameters, the last."""

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        self._data = dict(pairs)
        self._datalist: defaultdict[str, list[str]] = defaultdict(list)
        for name, value in pairs:
            self._datalist[name].append(value)

    @property
    def data(self) -> dict[str, str]:
        return self._data

    @property
    def datalist(self) -> dict[str, list[str]]:
        return self._datalist


class OAuthRequest(OAuth2Request):
    """Authlib's request around a `ProtocolRequest`. `granted`: the user authorization of the token."""

    client: OAuthClient | None

    def __init__(self, protocol_request: ProtocolRequest) -> None:
        super().__init__(protocol_request.method, ADDRESS)
        self.protocol_request = protocol_request
        self.granted: authorizations.UserAuthorization | None = None
        self.payload: FormPayload = FormPayload(protocol_request.pairs)

    @property
    def form(self) -> dict[str, str]:
        return self.payload.data


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
    """Authlib's server, with the stores that its grants and the HTTP handlers use. `service.py` registers grants and
    endpoints."""

    def __init__(
        self,
        registry: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        token_issuer: tokens.TokenIssuer,
        authorization_store: authorizations.AuthorizationStore,
    ) -> None:
        super().__init__()
        self.registry, self.users = registry, users
        self.token_issuer, self.authorization_store = token_issuer, authorization_store

    def query_client(self, client_id: str) -> OAuthClient | None:
        application = self.registry.by_client_id(client_id)
        return None if application is None else OAuthClient(application)

    def authenticate_client(self, request: OAuthRequest, _methods: object, _endpoint: str = "token") -> OAuthClient:
        if request.protocol_request.application is None:
            raise InvalidClientError
        return OAuthClient(request.protocol_request.application)

    def create_oauth2_request(self, request: ProtocolRequest | OAuthRequest) -> OAuthRequest:
        return request if isinstance(request, OAuthRequest) else OAuthRequest(request)

    def handle_response(self, status: int, body: Any, headers: Any) -> ProtocolResponse:
        return ProtocolResponse(status, dict(body or {}), dict(headers))

    def handle_error_response(self, request: OAuthRequest, error: OAuth2Error) -> ProtocolResponse:
        """Return the error as a redirect, or as a body like that of the real service."""
        if error.redirect_uri:
            return self.handle_response(*error(None))
        code = error.error
        if code == "invalid_request" and request.payload.grant_type in INVALID_GRANT_TYPES:
            code = "invalid_grant"
        return ProtocolResponse(400, {"error": code}, {})

    def token(self, protocol_request: ProtocolRequest) -> ProtocolResponse:
        response: ProtocolResponse = self.create_token_response(protocol_request)  # type: ignore[assignment]
        return response

    def endpoint(self, name: str, protocol_request: ProtocolRequest) -> ProtocolResponse:
        response: ProtocolResponse = self.create_endpoint_response(name, protocol_request)  # type: ignore[no-untyped-call]
        return response

    def consent(self, protocol_request: ProtocolRequest) -> ConsentRequest:
        """Validate an authorization request. Raises OAuth2Error, or ValueError for texts that it cannot hold."""
        grant: ConsentRequest = self.get_consent_grant(protocol_request, end_user=protocol_request.sign_in)  # type: ignore[no-untyped-call]
        return grant

    def finish(self, grant: ConsentRequest, sign_in: tokens.SignIn | None) -> ProtocolResponse:
        """Return the redirect with a code for the user's sign-in; None: access denied."""
        response: ProtocolResponse = self.create_authorization_response(grant.request, grant_user=sign_in, grant=grant)  # type: ignore[assignment]
        return response

    def sign_out(self, protocol_request: ProtocolRequest) -> EndSessionRequest:
        """Validate an end-session request. Raises as `consent` does."""
        validated = self.validate_endpoint_request("end_session", protocol_request)
        if not isinstance(validated, EndSessionRequest):
            raise TypeError("end_session is registered with another endpoint")
        return validated

    def save_token(self, token: object, request: object) -> None:
        """No-op: tokens are self-contained."""

    def send_signal(self, name: object, *args: object, **kwargs: object) -> None:
        """No-op: signals are not used."""

    def is_known(self, sign_in: tokens.SignIn) -> bool:
        return self.users.by_id(sign_in.user) is not None

    def issue(self, request: OAuthRequest, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the body of a token response, without an id_token."""
        if request.client is None:
            raise InvalidClientError
        protocol_request, authorization = request.protocol_request, request.granted
        application = request.client.application
        jti, granted = self.token_issuer.new_id(), names or application.scopes
        token = self.token_issuer.issue(
            application.client_id,
            granted,
            protocol_request.issuer,
            jti=jti,
            sign_in=authorization.sign_in if authorization else None,
        )
        body: dict[str, Any] = {
            "access_token": token,
            "expires_in": self.token_issuer.lifetime,
            "token_type": "Bearer",
        }
        if authorization is not None:
            authorization.access_tokens.append(jti)
            if scopes.OFFLINE in authorization.scopes:
                body["refresh_token"] = self.authorization_store.new_refresh_token(authorization)
        return body | {"scope": " ".join(granted)}


FoundToken = tokens.AccessToken | authorizations.IssuedRefreshToken


def find_token(server: OAuthServer, text: str) -> FoundToken | None:
    """Return a valid token; None for any other."""
    try:
        return server.token_issuer.access(text)
    except (tokens.InvalidTokenError, tokens.ExpiredTokenError):
        return server.authorization_store.look_up(text)


class TokenRevocation(RevocationEndpoint):
    """Revokes an access token; of a refresh token, the whole authorization."""

    server: OAuthServer

    def query_token(self, token_string: str, _token_type_hint: str | None) -> FoundToken | None:
        return find_token(self.server, token_string)

    def revoke_token(self, token: FoundToken, _request: OAuthRequest) -> None:
        if isinstance(token, tokens.AccessToken):
            self.server.token_issuer.revoke(token.jti)
        else:
            self.server.authorization_store.end(token.authorization)


class TokenIntrospection(IntrospectionEndpoint):
    server: OAuthServer

    def query_token(self, token_string: str, _token_type_hint: str | None) -> FoundToken | None:
        return find_token(self.server, token_string)

    def check_permission(self, token: FoundToken, client: OAuthClient, _request: OAuthRequest) -> bool:
        return token.check_client(client)

    def create_introspection_payload(self, token: FoundToken | None) -> dict[str, Any]:
        if token is None:
            return {"active": False}
        if isinstance(token, tokens.AccessToken):
            return {"active": True, **_introspected_claims(token)}
        authorization = token.authorization
        return {
            "active": True,
            "client_id": authorization.client_id,
            "sub": authorization.sign_in.user,
            "exp": int(token.expires),
            "scope": token.get_scope(),
        }


class SessionEnd(EndSessionEndpoint):
    """Validates logout requests; `login.py` ends the session."""

    def __init__(self, key: keys.SigningKey) -> None:
        super().__init__()
        self._key = key

    def get_server_jwks(self) -> Any:
        return self._key.jwks()

    def get_algorithms(self) -> list[str]:
        return ["RS256"]

    def end_session(self, end_session_request: EndSessionRequest) -> None:
        """No-op: `login.py` ends the browser session."""


def register_token_endpoints(server: OAuthServer) -> None:
    server.register_endpoint(TokenRevocation)
    server.register_endpoint(TokenIntrospection)
    server.register_endpoint(SessionEnd(server.token_issuer.key))


def _introspected_claims(access: tokens.AccessToken) -> dict[str, Any]:
    claims = {
        "client_id": access.client_id,
        "sub": access.user,
        "iss": access.issuer,
        "iat": access.issued_at,
        "exp": access.expires,
        "jti": access.jti,
        "scope": " ".join(access.scopes),
        "token_type": "Bearer",
    }
    return {name: value for name, value in claims.items() if value is not None}
