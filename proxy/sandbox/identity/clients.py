"""OAuth clients and requests as Authlib expects them, and client authentication (RFC 6749 §2). No I/O."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Payload, OAuth2Request

from proxy.sandbox import applications
from proxy.sandbox.identity import tokens

if TYPE_CHECKING:
    from proxy.sandbox.identity import authorizations
import base64
import binascii
import hmac
from collections.abc import Mapping
from urllib.parse import unquote_plus

# Authlib refuses requests without TLS, which the sandbox has not. Nothing else reads the address.
ADDRESS = "https://sandbox/"
USER_GRANT_TYPES = frozenset({applications.AUTHORIZATION_CODE, applications.PASSWORD})


@dataclass(frozen=True, slots=True)
class ProtocolRequest:
    """An OAuth request for Authlib. `pairs`: its query or form fields. `application`: the authenticated client.
    `sign_in`: the authenticated user. Set by faults: `ahead`, clock skew of issued tokens in seconds; `endless`, tokens
    without `exp`.
    """

    method: str
    pairs: tuple[tuple[str, str], ...] = field(repr=False)
    issuer: str
    application: applications.SandboxApplication | None = None
    sign_in: tokens.SignIn | None = None
    ahead: int = 0
    endless: bool = False


class OAuthClient(ClientMixin):
    """An application as Authlib's client."""

    def __init__(self, application: applications.SandboxApplication) -> None:
        self.application = application
        # Redirect URIs are allowed after logout, too.
        self.client_metadata = {"post_logout_redirect_uris": list(application.redirect_uris)}

    def __repr__(self) -> str:
        return repr(self.application)

    def get_client_id(self) -> str:
        """The client id."""
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
        """Return true if the grant type is allowed."""
        if grant_type == "refresh_token":
            return bool(self.application.flows & USER_GRANT_TYPES)
        return grant_type in self.application.flows


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
    """Verify the client secret. Raises RefusedError("invalid_client")."""
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
