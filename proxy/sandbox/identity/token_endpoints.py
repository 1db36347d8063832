"""What an application may ask about tokens, and do to them, once it has them: Authlib's endpoints on the sandbox's
stores. Revocation (RFC 7009), introspection (RFC 7662), the end of a session (OpenID Connect RP-Initiated Logout).
"""

from dataclasses import dataclass
from typing import Any

from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oidc.rpinitiated import EndSessionEndpoint, EndSessionRequest

from proxy.sandbox.identity import authorisations, keys, protocol, tokens
from proxy.sandbox.identity.clients import Client, Request


@dataclass(frozen=True, slots=True)
class Found:
    """A token that is good: one of the two."""

    access: tokens.Access | None = None
    refresh: authorisations.RefreshToken | None = None

    def check_client(self, client: Client) -> bool:
        """Whether it is this application's."""
        if self.refresh is not None:
            return self.refresh.check_client(client)
        return self.access is not None and self.access.client_id == client.get_client_id()

    def is_expired(self) -> bool:
        """It would not have been found."""
        return False

    def is_revoked(self) -> bool:
        """It would not have been found."""
        return False


def find(server: protocol.Server, text: str) -> Found | None:
    """The token, if it is good."""
    try:
        return Found(access=server.issued.access(text))
    except (tokens.InvalidTokenError, tokens.ExpiredTokenError):
        refresh = server.kept.look_up(text)
        return None if refresh is None else Found(refresh=refresh)


class Revocation(RevocationEndpoint):
    """Ends an access token; with a refresh token, all that came of the same sign-in."""

    server: protocol.Server

    def query_token(self, token_string: str, _token_type_hint: str | None) -> Found | None:
        """The token, whatever the hint says that it is."""
        return find(self.server, token_string)

    def revoke_token(self, token: Found, _request: Request) -> None:
        """From now on it is worth nothing."""
        if token.refresh is not None:
            self.server.kept.end(token.refresh.authorisation)
        if token.access is not None:
            self.server.issued.end_id(token.access.jti)


class Introspection(IntrospectionEndpoint):
    """What a token says; an application may ask about its own."""

    server: protocol.Server

    def query_token(self, token_string: str, _token_type_hint: str | None) -> Found | None:
        """The token, whatever the hint says that it is."""
        return find(self.server, token_string)

    def check_permission(self, token: Found, client: Client, _request: Request) -> bool:
        """Whether it is this application's."""
        return token.check_client(client)

    def introspect_token(self, token: Found) -> dict[str, Any]:
        """What the answer says beside `active`."""
        if token.refresh is not None:
            kept = token.refresh.authorisation
            said = {"client_id": kept.client_id, "sub": kept.sign_in.user, "exp": int(token.refresh.expires)}
            return {"active": True, **said, "scope": token.refresh.get_scope()}
        said = {} if token.access is None else _said(token.access)
        return {"active": True, **said}


class EndSession(EndSessionEndpoint):
    """Says whether a sign-out has to be confirmed and where it leads; the session is ended by `signing_in.py`."""

    def __init__(self, ring: keys.KeyRing) -> None:
        super().__init__()
        self._ring = ring

    def get_server_jwks(self) -> Any:
        """The keys of an id_token_hint."""
        return self._ring.jwks()

    def get_algorithms(self) -> list[str]:
        """The only one."""
        return ["RS256"]

    def end_session(self, end_session_request: EndSessionRequest) -> None:
        """Nothing: a session is a browser's."""


def register(server: protocol.Server, ring: keys.KeyRing) -> None:
    """All of them."""
    server.register_endpoint(Revocation)
    server.register_endpoint(Introspection)
    server.register_endpoint(EndSession(ring))


def _said(access: tokens.Access) -> dict[str, Any]:
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
