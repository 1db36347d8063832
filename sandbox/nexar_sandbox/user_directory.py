"""Directory of organizations and their users with password hashes.

The identity service authenticates users; the `adm*` queries list them.
Applications are in `applications.py`.
"""

import asyncio
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from werkzeug import security

# 16 MiB and some 50 ms a password.
METHOD = "scrypt:16384:8:1"
EMAIL_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")


@dataclass(frozen=True, slots=True)
class Organization:
    """Owner of applications and users. `id` is a GUID."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class SandboxUser:
    """A user. `id` is a GUID and the `sub` of tokens, `password` a hash by werkzeug, `organization` an id."""

    id: str
    email: str
    name: str
    password: str
    organization: str

    def __post_init__(self) -> None:
        if not EMAIL_ADDRESS.fullmatch(self.email):
            raise ValueError(f"user {self.name}: {self.email!r} is not an e-mail address")

    def __repr__(self) -> str:
        return f"SandboxUser({self.id!r}, {self.email!r})"

    @property
    def given_name(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def family_name(self) -> str:
        return self.name.partition(" ")[2]


_DEFAULTS = tomllib.loads(Path(__file__).with_name("defaults.toml").read_text("utf-8"))
DEFAULT_ORGANIZATION = Organization(**_DEFAULTS["organization"])
DEFAULT_PASSWORDS = {user["id"]: user.pop("plain_password") for user in _DEFAULTS["users"]}
DEFAULT_USERS = tuple(SandboxUser(**user, organization=DEFAULT_ORGANIZATION.id) for user in _DEFAULTS["users"])
DEFAULT_PASSWORD: str = DEFAULT_PASSWORDS[DEFAULT_USERS[0].id]
# Verified for unknown addresses, so that they take as long; no password matches it.
UNKNOWN_USER_HASH = f"{METHOD}$unknown$none"


class UserDirectory:
    """Organizations and users. E-mail addresses are unique, ignoring case."""

    def __init__(self, organizations: Iterable[Organization], users: Iterable[SandboxUser]) -> None:
        self._organizations = {organization.id: organization for organization in organizations}
        self._users: dict[str, SandboxUser] = {}
        for user in users:
            self.add(user)

    @property
    def all(self) -> tuple[SandboxUser, ...]:
        return tuple(self._users.values())

    def organization(self, id_: str) -> Organization | None:
        return self._organizations.get(id_)

    def of_organization(self, organization: str) -> tuple[SandboxUser, ...]:
        return tuple(user for user in self._users.values() if user.organization == organization)

    def by_id(self, id_: str) -> SandboxUser | None:
        return self._users.get(id_)

    def by_email(self, email: str) -> SandboxUser | None:
        folded = email.strip().casefold()
        return next((user for user in self._users.values() if user.email.casefold() == folded), None)

    @property
    def with_default_password(self) -> tuple[tuple[SandboxUser, str], ...]:
        """Default users whose password is unchanged, with the password."""
        first = {user.id: user.password for user in DEFAULT_USERS}
        return tuple((user, DEFAULT_PASSWORDS[user.id]) for user in self.all if user.password == first.get(user.id))

    def add(self, user: SandboxUser) -> None:
        """Add a user. Raises ValueError if the id or address is taken, or the organization does not exist."""
        if user.id in self._users:
            raise ValueError(f"user {user.email}: the id is taken")
        if self.by_email(user.email) is not None:
            raise ValueError(f"user {user.email}: the address is taken")
        if user.organization not in self._organizations:
            raise ValueError(f"user {user.email}: there is no organization {user.organization}")
        self._users[user.id] = user

    async def authenticate(self, email: str, password: str) -> SandboxUser | None:
        """Authenticate a user; None on failure. Takes as long for an unknown address."""
        user = self.by_email(email)
        # Not on the event loop: scrypt takes its time.
        good = await asyncio.to_thread(
            security.check_password_hash, user.password if user else UNKNOWN_USER_HASH, password
        )
        return user if good else None
