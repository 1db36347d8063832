"""Applications and requests as Authlib's protocol code wants to see them (RFC 6749 §2). No network, no state."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Payload, OAuth2Request

from proxy.sandbox import applications
from proxy.sandbox.identity import tokens

if TYPE_CHECKING:
    from proxy.sandbox.identity import authorisations

# Authlib refuses what does not come by TLS; the sandbox has none. Nothing else reads the address.
ADDRESS = "https://sandbox/"
USERS_FLOWS = frozenset({applications.AUTHORIZATION_CODE, applications.PASSWORD})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the protocol: `pairs` are its query or form. `account` is who has shown its secret, `sign_in` who
    has signed in or given a password. As faults want it, tokens come from a clock some seconds `ahead`, or are
    `endless`.
    """

    method: str
    pairs: tuple[tuple[str, str], ...] = field(repr=False)
    issuer: str
    account: applications.SandboxApplication | None = None
    sign_in: tokens.SignIn | None = None
    ahead: int = 0
    endless: bool = False


class Client(ClientMixin):
    """An application."""

    def __init__(self, account: applications.SandboxApplication) -> None:
        self.account = account
        # Where a browser may go after signing out is where it may go after signing in.
        self.client_metadata = {"post_logout_redirect_uris": list(account.redirect_uris)}

    def __repr__(self) -> str:
        return repr(self.account)

    def get_client_id(self) -> str:
        """Its public name."""
        return self.account.client_id

    def get_default_redirect_uri(self) -> str | None:
        """None: it has to be given (OpenID Connect Core §3.1.2.1)."""
        return None

    def get_allowed_scope(self, scope: str) -> str:
        """All of them: the grant has refused the others."""
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Letter for letter (RFC 9700 §4.1.3)."""
        return redirect_uri in self.account.redirect_uris

    def check_response_type(self, response_type: str) -> bool:
        """Whether it may send users here."""
        return response_type == "code" and applications.AUTHORIZATION_CODE in self.account.flows

    def check_grant_type(self, grant_type: str) -> bool:
        """Whether it may ask for tokens so."""
        if grant_type == "refresh_token":
            return bool(self.account.flows & USERS_FLOWS)
        return grant_type in self.account.flows


class Payload(OAuth2Payload):
    """The query or form of a request; of what is given twice, the last."""

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


class Request(OAuth2Request):
    """An `Asked`, and while it is answered, what is found out about it. `granted`: of what its token comes."""

    client: Client | None

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.method, ADDRESS)
        self.asked = asked
        self.granted: authorisations.Authorisation | None = None
        self.payload: Payload = Payload(asked.pairs)

    @property
    def form(self) -> dict[str, str]:
        return self.payload.data
