"""Settings of the sandbox. Defaults follow the contract."""

from dataclasses import dataclass, field
from pathlib import Path

from nexar_sandbox import clocks, user_directory
from nexar_sandbox import faults as faults_of
from nexar_sandbox.applications import DEFAULT_APPLICATION, SandboxApplication
from nexar_sandbox.legacy_v3 import service as legacy_service

# Token requests a client id may make (contract graphql.md §4.1).
TOKEN_WINDOWS = (
    clocks.Window(2, 1),
    clocks.Window(200, 15 * 60),
    clocks.Window(3_000, 12 * 3600),
    clocks.Window(40_000, 7 * 86_400),
)


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """`catalog` is a file of further parts. `token_windows` () switches the rate limits off, `token_lifetime` is in
    seconds.

    `no_auth` accepts requests without a valid token, for the first application with supply data and the first user.
    `answer_fields`: maximum number of fields of a response, repeated ones included. `bill_refused`: parts that an error
    removes from a response are billed. `faults` are active from the start. `users` may sign in, each in one of the
    `organizations`. `legacy` configures the old v3 service. /admin is also served under the host names `admin_hosts`.
    """

    catalog: Path | None = None
    applications: tuple[SandboxApplication, ...] = (DEFAULT_APPLICATION,)
    organizations: tuple[user_directory.Organization, ...] = (user_directory.DEFAULT_ORGANIZATION,)
    users: tuple[user_directory.SandboxUser, ...] = user_directory.DEFAULT_USERS
    token_windows: tuple[clocks.Window, ...] = TOKEN_WINDOWS
    token_lifetime: int = 86_400
    no_auth: bool = False
    answer_fields: int = 500_000
    bill_refused: bool = False
    faults: tuple[faults_of.Fault, ...] = ()
    legacy: legacy_service.LegacySettings = field(default_factory=legacy_service.LegacySettings)
    admin_hosts: tuple[str, ...] = ()
