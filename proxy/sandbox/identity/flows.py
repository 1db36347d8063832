"""The flows by which tokens are asked for, each Authlib's with the sandbox's stores behind it (contract graphql.md §4).

`register` puts them into the server: client credentials, authorization code with PKCE, refresh token, password.
"""

from typing import Any

from authlib.oauth2.rfc6749 import AccessDeniedError, BaseGrant, InvalidScopeError
from authlib.oauth2.rfc6749 import grants as authlib_grants

from proxy.sandbox.identity import authorisations, extensions, protocol, scopes, tokens
from proxy.sandbox.identity.clients import Client, Request


class Issuing(BaseGrant):
    """What all of them do alike. `BY_USERS`: a user lets the application in."""

    BY_USERS = True
    request: Request
    server: protocol.Server

    def validate_requested_scope(self) -> None:
        """Raises InvalidScopeError for one that the application may not have."""
        client = self.request.client
        if client is None or scopes.granted(client.account, self._asked(), user=self.BY_USERS) is None:
            raise InvalidScopeError

    def generate_token(self, user: Any = None, scope: str | None = None, *_unused: Any, **_others: Any) -> Any:
        """The body of the answer. `user` is a sign-in."""
        self.request.granted = self.authorisation(user, scope)
        return self.server.issue(self.request, tuple(dict.fromkeys((scope or "").split())))

    def authorisation(self, _sign_in: Any, _scope: str | None) -> authorisations.Authorisation | None:
        """Of what the token comes; None where no user has let anybody in."""
        return None

    def _asked(self) -> str | None:
        return self.request.payload.data.get("scope")


class ClientCredentials(Issuing, authlib_grants.ClientCredentialsGrant):
    """RFC 6749 §4.4."""

    BY_USERS = False


class AuthorizationCode(Issuing, authlib_grants.AuthorizationCodeGrant):
    """RFC 6749 §4.1."""

    def save_authorization_code(self, code: str, request: Request) -> None:
        """Keep what the user has allowed until the application comes for it."""
        data = request.payload.data
        allowed = authorisations.Authorisation(
            data["client_id"], _signed_in(request), tuple(dict.fromkeys(data["scope"].split())), data.get("nonce")
        )
        kept = authorisations.Code(allowed, data["redirect_uri"], data["code_challenge"])
        self.server.kept.keep_code(code, kept)

    def query_authorization_code(self, code: str, client: Client) -> authorisations.Code | None:
        """What is behind the code, if this application was sent it. Who brings it again is noticed: a code is kept, but
        good once, even where the rest of the request is wrong, as IdentityServer has it."""
        kept = self.server.kept.code(code)
        if kept is None or kept.authorisation.client_id != client.get_client_id():
            return None
        kept.used = True
        return kept if self.server.is_known(kept.authorisation.sign_in) else None

    def delete_authorization_code(self, _authorization_code: authorisations.Code) -> None:
        """Nothing: it has been used since it was looked for."""

    def authenticate_user(self, authorization_code: authorisations.Code) -> tokens.SignIn:
        """Whose token it will be."""
        return authorization_code.authorisation.sign_in

    def authorisation(self, _sign_in: Any, _scope: str | None) -> authorisations.Authorisation | None:
        code = self.request.authorization_code
        return code.authorisation if isinstance(code, authorisations.Code) else None


class RefreshToken(Issuing, authlib_grants.RefreshTokenGrant):
    """RFC 6749 §6, with a new refresh token each time."""

    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> authorisations.RefreshToken | None:
        """What is behind it."""
        kept = self.server.kept.refresh_token(refresh_token)
        return kept if kept and self.server.is_known(kept.authorisation.sign_in) else None

    def authenticate_user(self, refresh_token: authorisations.RefreshToken) -> tokens.SignIn:
        """Whose token it will be."""
        return refresh_token.authorisation.sign_in

    def revoke_old_credential(self, refresh_token: authorisations.RefreshToken) -> None:
        """It is good once."""
        self.server.kept.spend(refresh_token)

    def authorisation(self, _sign_in: Any, _scope: str | None) -> authorisations.Authorisation | None:
        kept = self.request.refresh_token
        return kept.authorisation if isinstance(kept, authorisations.RefreshToken) else None


class Password(Issuing, authlib_grants.ResourceOwnerPasswordCredentialsGrant):
    """RFC 6749 §4.3. The password has been checked before: that takes too long to do here."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

    def authenticate_user(self, _username: str, _password: str) -> tokens.SignIn | None:
        """Whose password it is."""
        return self.request.asked.sign_in

    def authorisation(self, sign_in: tokens.SignIn, scope: str | None) -> authorisations.Authorisation | None:
        client_id = self.request.client.get_client_id() if self.request.client else ""
        return authorisations.Authorisation(client_id, sign_in, tuple((scope or "").split()))


def _signed_in(request: Request) -> tokens.SignIn:
    if not isinstance(request.user, tokens.SignIn):
        raise AccessDeniedError
    return request.user


def register(server: protocol.Server) -> None:
    """Every flow there is. Which an application may use is its own `flows`."""
    signing = extensions.IdTokens(server.issued)
    server.register_grant(ClientCredentials)
    server.register_grant(
        AuthorizationCode, [extensions.Pkce(), signing, extensions.refusing, extensions.asking_the_user]
    )
    server.register_grant(RefreshToken, [signing])
    server.register_grant(Password, [signing])
