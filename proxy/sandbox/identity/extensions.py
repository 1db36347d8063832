"""What OpenID Connect and PKCE add to the flows: Authlib's extensions, held to what the service does."""

from typing import Any

from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.grants import OpenIDToken
from authlib.oidc.core.grants.util import validate_request_prompt

from proxy.sandbox.identity import authorisations, tokens
from proxy.sandbox.identity.clients import Request

METHOD = "S256"


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


def asking_the_user(grant: Any) -> None:
    """`prompt`, whatever the scopes (OpenID Connect Core §3.1.2.1): it is found out what a browser has to be shown."""
    grant.register_hook("after_validate_consent_request", validate_request_prompt)
