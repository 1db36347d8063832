"""OAuth clients as Authlib expects them, and client authentication (RFC 6749 §2). No I/O."""

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_plus

from authlib.oauth2.rfc6749 import ClientMixin

from nexar_sandbox import applications
from nexar_sandbox.identity import tokens

USER_GRANT_TYPES = frozenset({applications.AUTHORIZATION_CODE, applications.PASSWORD})


@dataclass(frozen=True, slots=True)
class ProtocolRequest:
    """An OAuth request for Authlib. `pairs`: its query or form fields. `application`: the authenticated client.
    `sign_in`: the authenticated user.
    """

    method: str
    pairs: tuple[tuple[str, str], ...] = field(repr=False)
    issuer: str
    application: applications.SandboxApplication | None = None
    sign_in: tokens.SignIn | None = None


class OAuthClient(ClientMixin):
    """An application as Authlib's client."""

    def __init__(self, application: applications.SandboxApplication) -> None:
        self.application = application
        # Redirect URIs are allowed after logout, too.
        self.client_metadata = {"post_logout_redirect_uris": list(application.redirect_uris)}

    def __repr__(self) -> str:
        return repr(self.application)

    def get_client_id(self) -> str:
        return self.application.client_id

    def get_default_redirect_uri(self) -> str | None:
        """None: the parameter is required (OpenID Connect Core §3.1.2.1)."""
        return None

    def get_allowed_scope(self, scope: str) -> str:
        """All scopes: the grant has validated them."""
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Exact comparison (RFC 9700 §4.1.3)."""
        return redirect_uri in self.application.redirect_uris

    def check_response_type(self, response_type: str) -> bool:
        """Return true if the authorization code flow is allowed."""
        return response_type == "code" and applications.AUTHORIZATION_CODE in self.application.flows

    def check_grant_type(self, grant_type: str) -> bool:
        if grant_type == "refresh_token":
            return bool(self.application.flows & USER_GRANT_TYPES)
        return grant_type in self.application.flows


class ClientAuthenticationError(Exception):
    """Client authentication failed; `code` is the OAuth error (RFC 6749 §5.2)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class PresentedCredentials:
    """Client credentials of a request, not verified."""

    client_id: str
    client_secret: str = field(repr=False)


def read_credentials(form: Mapping[str, str], authorization: str | None) -> PresentedCredentials:
    """Read the client credentials from the Basic header if there is one, else from the form. Raises
    ClientAuthenticationError."""
    if authorization and authorization[:6].lower() == "basic ":
        return _basic(authorization[6:])
    client_id, secret = form.get("client_id"), form.get("client_secret")
    if not client_id or not secret:
        raise ClientAuthenticationError("invalid_client")
    return PresentedCredentials(client_id, secret)


def authenticate_client(
    application: applications.SandboxApplication | None, credentials: PresentedCredentials
) -> applications.SandboxApplication:
    """Verify the client secret. Raises ClientAuthenticationError("invalid_client")."""
    if application is None or not hmac.compare_digest(
        application.client_secret.encode(), credentials.client_secret.encode()
    ):
        raise ClientAuthenticationError("invalid_client")
    return application


def _basic(encoded: str) -> PresentedCredentials:
    """Client id and secret are form-encoded (RFC 6749 §2.3.1)."""
    try:
        client_id, _, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise ClientAuthenticationError("invalid_client") from None
    return PresentedCredentials(unquote_plus(client_id), unquote_plus(secret))
