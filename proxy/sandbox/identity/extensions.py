"""What OpenID Connect and PKCE add to the flows: Authlib's extensions, held to what the service does."""

from typing import Any

from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.errors import RequestNotSupportedError, RequestURINotSupportedError
from authlib.oidc.core.grants import OpenIDToken
from authlib.oidc.core.grants.util import validate_request_prompt

from proxy.sandbox.identity import authorisations, tokens
from proxy.sandbox.identity.clients import Request

METHOD = "S256"
RESPONSE_MODE = "query"
# Digits of max_age: centuries.
LONGEST_AGE = 10


class Pkce(CodeChallenge):
    """RFC 7636, for every application and by S256 only."""

    SUPPORTED_CODE_CHALLENGE_METHOD = [METHOD]  # noqa: RUF012 (Authlib's)

    def validate_code_challenge(self, grant: Any, redirect_uri: Any) -> None:
        """Raises InvalidRequestError where the challenge is missing or of another kind."""
        data = grant.request.payload.data
        if not data.get("code_challenge") or data.get("code_challenge_method") != METHOD:
            raise InvalidRequestError(f"A code_challenge by {METHOD} is required.")
        super().validate_code_challenge(grant, redirect_uri)

    def get_authorization_code_challenge_method(self, _code: authorisations.Code) -> str:
        """The only one."""
        return METHOD


class IdTokens(OpenIDToken):
    """An id_token beside each access token of the scope openid, signed by the sandbox's own keys and clock."""

    def __init__(self, issued: tokens.Tokens) -> None:
        self._tokens = issued

    def encode_id_token(self, token: dict[str, Any], request: Request) -> str:
        """The id_token. What it says of the user is `sub`; the rest is at the userinfo endpoint."""
        granted, asked = request.granted, request.asked
        if granted is None:
            raise InvalidRequestError("There is no user for an id_token.")
        return self._tokens.identify(
            granted.client_id,
            asked.issuer,
            granted.sign_in,
            nonce=granted.nonce,
            access_token=token["access_token"],
            ahead=asked.ahead,
        )


def refusing(grant: Any) -> None:
    """What is not there is refused, and not passed over: a client that counts on it would be let down later (OpenID
    Connect Core §3.1.2.1, §6)."""
    grant.register_hook("after_validate_authorization_request_payload", _refuse)


def max_age(text: str | None) -> int | None:
    """The seconds; None where there are none, or no number. A sign-in cannot be younger than one of this moment."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= LONGEST_AGE):
        return None
    return int(text)


def _refuse(grant: Any, _redirect_uri: Any) -> None:
    data = grant.request.payload.data
    if "request" in data:
        raise RequestNotSupportedError
    if "request_uri" in data:
        raise RequestURINotSupportedError
    if data.get("response_mode", RESPONSE_MODE) != RESPONSE_MODE:
        raise InvalidRequestError(f"The response_mode must be {RESPONSE_MODE}.")
    if "max_age" in data and max_age(data["max_age"]) is None:
        raise InvalidRequestError("The max_age must be a number of seconds.")


def asking_the_user(grant: Any) -> None:
    """`prompt`, whatever the scopes (OpenID Connect Core §3.1.2.1): it is found out what a browser has to be shown."""
    grant.register_hook("after_validate_consent_request", validate_request_prompt)
