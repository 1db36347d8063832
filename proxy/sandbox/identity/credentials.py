"""How an application says who it is, without a network (RFC 6749 §2.3.1): credentials in, an account out.

The client comes before the grant and the scope, as IdentityServer has it (contract graphql.md §4.1).
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_plus

from proxy.sandbox import applications


class RefusedError(Exception):
    """An OAuth error; `code` is what the body names (RFC 6749 §5.2)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a caller says it is."""

    client_id: str
    client_secret: str = field(repr=False)


def given(form: Mapping[str, str], authorization: str | None) -> Credentials:
    """From Basic if there is a Basic header, else from the form. Raises RefusedError("invalid_client")."""
    if authorization and authorization[:6].lower() == "basic ":
        return _basic(authorization[6:])
    client_id, secret = form.get("client_id"), form.get("client_secret")
    if not client_id or not secret:
        raise RefusedError("invalid_client")
    return Credentials(client_id, secret)


def authenticate(
    account: applications.SandboxApplication | None, given: Credentials
) -> applications.SandboxApplication:
    """The account, if the secret is its own. Raises RefusedError("invalid_client")."""
    if account is None or not hmac.compare_digest(account.client_secret.encode(), given.client_secret.encode()):
        raise RefusedError("invalid_client")
    return account


def _basic(encoded: str) -> Credentials:
    """Both halves are form encoded before they are joined (RFC 6749 §2.3.1)."""
    try:
        client_id, _, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise RefusedError("invalid_client") from None
    return Credentials(unquote_plus(client_id), unquote_plus(secret))
