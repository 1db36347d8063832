"""The authorization server: Authlib's protocol code on what the sandbox knows. No network; aiohttp is the endpoints'.

Who asks has shown its secret before (`credentials.py`), whoever signs in has done so in a browser (`signing_in.py`).
Where the service is known to name an error otherwise than Authlib does, it is named here.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer, InvalidClientError
from authlib.oidc.rpinitiated import EndSessionRequest

from proxy.sandbox import applications, user_directory
from proxy.sandbox.identity import authorisations, scopes, tokens
from proxy.sandbox.identity.clients import Asked, Client, Request

# A bad code, verifier or password is invalid_grant even where it is missing (contract graphql.md §4.1).
GRANT_FAULTS = frozenset({"authorization_code", "password"})


class Answer(NamedTuple):
    """A status, a JSON object, and headers: a redirect has a Location."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]


class Consent(Protocol):
    """An authorization request as Authlib found it. `prompt`: what the browser has to be shown, if anything."""

    request: Request
    redirect_uri: str
    prompt: str | None

    @property
    def client(self) -> Any:
        """A `Client`."""


class Server(AuthorizationServer):
    """What it can do is registered (`flows.py`, `token_endpoints.py`) by whoever puts it together."""

    def __init__(
        self,
        known: applications.ApplicationRegistry,
        users: user_directory.UserDirectory,
        issued: tokens.Tokens,
        kept: authorisations.Authorisations,
    ) -> None:
        super().__init__()
        self._known, self._users, self.issued, self.kept = known, users, issued, kept

    def query_client(self, client_id: str) -> Client | None:
        """The application with this client id."""
        account = self._known.by_client_id(client_id)
        return None if account is None else Client(account)

    def authenticate_client(self, request: Request, _methods: object, _endpoint: str = "token") -> Client:
        """Who has shown its secret."""
        if request.asked.account is None:
            raise InvalidClientError
        return Client(request.asked.account)

    def create_oauth2_request(self, request: Asked | Request) -> Request:
        """As Authlib wants it."""
        return request if isinstance(request, Request) else Request(request)

    def handle_response(self, status: int, body: Any, headers: Any) -> Answer:
        """What is sent."""
        return Answer(status, dict(body or {}), dict(headers))

    def handle_error_response(self, request: Request, error: OAuth2Error) -> Answer:
        """An error goes to the application, by a redirect or as a body that says no more than the service's."""
        if error.redirect_uri:
            return self.handle_response(*error(None))
        code = error.error
        if code == "invalid_request" and request.payload.grant_type in GRANT_FAULTS:
            code = "invalid_grant"
        return Answer(400, {"error": code}, {})

    def token(self, asked: Asked) -> Answer:
        """The answer of the token endpoint."""
        answer: Answer = self.create_token_response(asked)  # type: ignore[assignment]
        return answer

    def endpoint(self, name: str, asked: Asked) -> Answer:
        """The answer of an endpoint that is registered by this name."""
        answer: Answer = self.create_endpoint_response(name, asked)  # type: ignore[no-untyped-call]
        return answer

    def consent(self, asked: Asked) -> Consent:
        """An authorization request that is good. Raises OAuth2Error, or ValueError for what its text cannot say."""
        grant: Consent = self.get_consent_grant(asked, end_user=asked.sign_in)  # type: ignore[no-untyped-call]
        return grant

    def finish(self, grant: Consent, sign_in: tokens.SignIn | None) -> Answer:
        """The redirect with a code for who has signed in and allowed it; None: nobody has."""
        answer: Answer = self.create_authorization_response(grant.request, grant_user=sign_in, grant=grant)  # type: ignore[assignment]
        return answer

    def sign_out(self, asked: Asked) -> EndSessionRequest:
        """An end-session request that is good. Raises as `consent` does."""
        found = self.validate_endpoint_request("end_session", asked)
        if not isinstance(found, EndSessionRequest):
            raise TypeError("end_session is registered with another endpoint")
        return found

    def save_token(self, token: object, request: object) -> None:
        """Nothing: a token says by itself what it is good for."""

    def send_signal(self, name: object, *args: object, **kwargs: object) -> None:
        """Nobody listens."""

    def is_known(self, sign_in: tokens.SignIn) -> bool:
        """Whether the user is still there."""
        return self._users.by_id(sign_in.user) is not None

    def issue(self, request: Request, names: tuple[str, ...]) -> dict[str, Any]:
        """The body of a token answer, without an id_token."""
        if request.client is None:
            raise InvalidClientError
        asked, account, authorisation = request.asked, request.client.account, request.granted
        jti, granted = self.issued.new_id(), names or account.scopes
        token = self.issued.issue(
            account.client_id,
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
