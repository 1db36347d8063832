"""Settings of the sandbox. Defaults follow the contract."""

from dataclasses import dataclass, field
from pathlib import Path

from nexar_sandbox import behavior as behaviors
from nexar_sandbox import faults as faults_of
from nexar_sandbox import user_directory
from nexar_sandbox.applications import DEFAULT_APPLICATION, SandboxApplication
from nexar_sandbox.kit import windows
from nexar_sandbox.legacy_v3 import settings as legacy_settings

# Of the first design service; there are four.
LAST_DESIGN_PORT = 65_535 - 3
# Token requests a client id may make (contract graphql.md §4.1).
TOKEN_WINDOWS = (
    windows.Window(2, 1),
    windows.Window(200, 15 * 60),
    windows.Window(3_000, 12 * 3600),
    windows.Window(40_000, 7 * 86_400),
)


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Units: `refresh_lifetime` seconds, `parts` the number of catalog parts in all (None: those shipped).

    `token_windows` () switches the rate limits off. `no_auth` accepts requests without a
    valid token, for the first application with supply data and the first user. `execution_timeout`: seconds per query,
    as in the service's software; `answer_fields`: maximum number of fields of a response, repeated ones included.
    `issuer` None: the URL of the token request. `faults` are active from the start. `users` may sign in, each in one of
    the `organizations`. `legacy` configures the old v3 service. `state` is the state file; the applications,
    organizations and users of the settings are then initial values only. None: in memory.
    `design_port`: the port of the first design service, the others use the following ones; 0: free ones.
    /admin is also served under the host names in `admin_hosts`.
    `prepared` is the catalog file, which is created if it is missing. `behavior` has what may differ
    from the contract.
    """

    parts: int | None = None
    catalog: Path | None = None
    prepared: Path | None = None
    seed: int = 1
    applications: tuple[SandboxApplication, ...] = (DEFAULT_APPLICATION,)
    organizations: tuple[user_directory.Organization, ...] = (user_directory.DEFAULT_ORGANIZATION,)
    users: tuple[user_directory.SandboxUser, ...] = user_directory.DEFAULT_USERS
    refresh_lifetime: int = 30 * 86_400
    token_windows: tuple[windows.Window, ...] = TOKEN_WINDOWS
    no_auth: bool = False
    execution_timeout: float = 30.0
    answer_fields: int = 500_000
    issuer: str | None = None
    audience: str = "https://api.nexar.com"
    site_url: str = "https://octopart.com"
    faults: tuple[faults_of.Fault, ...] = ()
    state: Path | None = None
    legacy: legacy_settings.LegacySettings = field(default_factory=legacy_settings.LegacySettings)
    design_port: int = 0
    admin_hosts: tuple[str, ...] = ()
    behavior: behaviors.Behavior = field(default_factory=behaviors.Behavior)

    def __post_init__(self) -> None:
        for name, value in (("parts", self.parts), ("answer_fields", self.answer_fields)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if self.refresh_lifetime < 1:
            raise ValueError(f"refresh_lifetime must be at least 1 second, not {self.refresh_lifetime}")
        if self.execution_timeout <= 0:
            raise ValueError(f"execution_timeout must be more than 0 seconds, not {self.execution_timeout}")
        if not 0 <= self.design_port <= LAST_DESIGN_PORT:
            raise ValueError(f"design_port must be from 0 to {LAST_DESIGN_PORT}, not {self.design_port}")
