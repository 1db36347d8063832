"""Registry of applications (OAuth clients): credentials, domains, grant types, part limit and features; plans, which
set the last two.

The settings define the initial ones; the portal creates and changes applications at run time.
"""

import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from nexar_sandbox import user_directory

SUPPLY_SCOPE = "supply.domain"
DOMAINS = ("supply", "design")
CLIENT_CREDENTIALS, AUTHORIZATION_CODE, PASSWORD = "client_credentials", "authorization_code", "password"
FLOWS = frozenset({CLIENT_CREDENTIALS, AUTHORIZATION_CODE, PASSWORD})
# SupNexarFeatureID (contract graphql.md §1.3), with names for people.
FEATURE_NAMES = {
    "LEAD_TIME": "Lead time",
    "TECH_SPECS": "Tech specs",
    "LIFECYCLE": "Lifecycle",
    "DATASHEETS": "Datasheets",
    "CAD_MODELS": "CAD models",
    "SIMILAR_PARTS": "Similar parts",
    "SUGGESTIONS": "Suggestions",
    "SPELLING_CORRECTIONS": "Spelling corrections",
    "INVENTORY_HISTORY": "Inventory history",
}
FEATURES = frozenset(FEATURE_NAMES)


def is_absolute_uri(uri: str) -> bool:
    """Whether the URI is valid as a redirect URI (RFC 6749 §3.1.2). A private-use scheme contains a dot and needs no
    host (RFC 8252 §7.1)."""
    if not uri.isascii() or not uri.isprintable() or " " in uri or "#" in uri:
        return False
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return bool(parts.netloc) if parts.scheme in ("http", "https") else "." in parts.scheme


@dataclass(frozen=True, slots=True)
class SandboxApplication:
    """An OAuth client of the sandbox. `part_limit` is parts a calendar month or for a lifetime, as `period`
    says, `application_id` a GUID, `organization` its owner's id.

    `flows` are the grants that it may use; a user's flow includes refresh tokens. `redirect_uris` are the exact URIs to
    which a browser may be redirected with a code or after sign-out. `created` in seconds since 1970; None: existed at
    the start.
    """

    name: str
    application_id: str
    client_id: str
    client_secret: str
    part_limit: int = 1000
    period: Literal["month", "lifetime"] = "month"
    features: frozenset[str] = FEATURES
    domains: tuple[str, ...] = ("supply",)
    redirect_uris: tuple[str, ...] = ()
    flows: frozenset[str] = frozenset({CLIENT_CREDENTIALS})
    organization: str = user_directory.DEFAULT_ORGANIZATION.id
    description: str | None = None
    created: float | None = None
    plan: str | None = None

    def __post_init__(self) -> None:
        self._require_known("features", self.features, FEATURES)
        self._require_known("domains", self.domains, DOMAINS)
        self._require_known("flows", self.flows, FLOWS)
        if not self.domains:
            raise ValueError(f"application {self.name}: it needs a domain, {' or '.join(DOMAINS)}")
        for uri in self.redirect_uris:
            if not is_absolute_uri(uri):
                raise ValueError(f"application {self.name}: {uri!r} is not an absolute URI without a fragment")

    def __repr__(self) -> str:
        return f"SandboxApplication({self.name!r}, application_id={self.application_id!r})"

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(f"{domain}.domain" for domain in self.domains)

    def _require_known(self, kind: str, names: Iterable[str], valid_names: Iterable[str]) -> None:
        unknown = set(names) - set(valid_names)
        if unknown:
            raise ValueError(f"application {self.name}: unknown {kind} {sorted(unknown)}")


_DEFAULTS = tomllib.loads(Path(__file__).with_name("defaults.toml").read_text("utf-8"))
DEFAULT_APPLICATION = msgspec.convert(_DEFAULTS["application"], SandboxApplication)
# For user tokens.
DEFAULT_DESIGN_APPLICATION = msgspec.convert(_DEFAULTS["design_application"], SandboxApplication)


class ApplicationRegistry:
    """Applications by application id, a GUID in either case of letters. May be changed at run time."""

    def __init__(self, applications: Iterable[SandboxApplication]) -> None:
        self._by_id: dict[str, SandboxApplication] = {}
        self._for_ide: dict[str, str] = {}
        for application in applications:
            self.add(application)
        if not self._by_id:
            raise ValueError("applications must not be empty")

    @property
    def all(self) -> tuple[SandboxApplication, ...]:
        """All applications, oldest first."""
        return tuple(self._by_id.values())

    def of_organization(self, organization: str) -> tuple[SandboxApplication, ...]:
        return tuple(application for application in self.all if application.organization == organization)

    def by_client_id(self, client_id: str) -> SandboxApplication | None:
        return next((application for application in self.all if application.client_id == client_id), None)

    def by_application(self, application_id: str) -> SandboxApplication | None:
        return self._by_id.get(application_id.lower())

    def add(self, application: SandboxApplication) -> None:
        """Add an application. Raises ValueError if its client id or application id is in use."""
        if self.by_client_id(application.client_id) or self.by_application(application.application_id):
            raise ValueError(f"application {application.name}: client ids and application ids must differ")
        self._by_id[application.application_id.lower()] = application

    def replace(self, application: SandboxApplication) -> None:
        """Replace the application with the same application id. Raises KeyError if there is none, ValueError if the
        client id belongs to another."""
        before = self._by_id[application.application_id.lower()]
        if self.by_client_id(application.client_id) not in (None, before):
            raise ValueError(f"application {application.name}: its client id is another's")
        self._by_id[application.application_id.lower()] = application

    def ide_application(self, organization: str) -> SandboxApplication | None:
        """Return the application that the IDE uses: the chosen one, else the organization's first."""
        application = self.by_application(self._for_ide.get(organization, ""))
        return application or next(iter(self.of_organization(organization)), None)

    def choose_for_ide(self, application_id: str) -> None:
        """Let the IDE use this application. Raises KeyError if there is none."""
        application = self._by_id[application_id.lower()]
        self._for_ide[application.organization] = application.application_id


# Names, add-ons, and the part limits of all but Enterprise are those of contract graphql.md §6; Enterprise's is "as
# agreed" there, so the number is the sandbox's own.
MAX_PARTS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """`parts` a `period`, unless an application has its own limit. `add_ons` are features that may be added."""

    name: str
    parts: int
    features: frozenset[str]
    add_ons: tuple[str, ...] = ()
    period: Literal["month", "lifetime"] = "month"


_STANDARD = frozenset({"SUGGESTIONS", "SPELLING_CORRECTIONS"})
PLANS = {
    "evaluation": SandboxPlan("Evaluation", 100, FEATURES, period="lifetime"),
    "standard": SandboxPlan("Standard", 2_000, _STANDARD),
    "pro": SandboxPlan(
        "Pro", 15_000, _STANDARD | {"SIMILAR_PARTS"}, ("LEAD_TIME", "TECH_SPECS", "LIFECYCLE", "DATASHEETS")
    ),
    "enterprise": SandboxPlan("Enterprise", 1_000_000, FEATURES),
}


def plan_of(application: SandboxApplication) -> SandboxPlan | None:
    """Return the application's plan; None: a custom limit and features."""
    return PLANS.get(application.plan or "")


def with_plan(
    application: SandboxApplication, plan: str, add_ons: Collection[str] = (), parts: int | None = None
) -> SandboxApplication:
    """Return the application with this plan, a key of PLANS. Usage is kept. `parts` None: the plan's limit. Raises
    ValueError for an unknown plan, and for add-ons that the plan cannot have."""
    if plan not in PLANS:
        raise ValueError(f"{plan!r} is not a plan; there are {', '.join(PLANS)}.")
    chosen = PLANS[plan]
    if add_ons and not chosen.add_ons:
        raise ValueError(f"Add-ons are for Pro; {chosen.name} has what it has.")
    for add_on in add_ons:
        if add_on not in chosen.add_ons:
            raise ValueError(f"{chosen.name} has no add-on {add_on!r}; its add-ons are {', '.join(chosen.add_ons)}.")
    if "LIFECYCLE" in add_ons and "TECH_SPECS" not in add_ons:
        raise ValueError("Lifecycle needs Tech specs.")
    return replace(
        application,
        plan=plan,
        part_limit=chosen.parts if parts is None else parts,
        period=chosen.period,
        features=chosen.features | frozenset(add_ons),
    )
