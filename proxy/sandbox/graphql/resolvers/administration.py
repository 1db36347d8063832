"""The adm* queries (contract graphql.md §5.4): the sandbox's one organization and its applications.

The service wants a user's token for these; the sandbox has no users, and takes the token of any application.
"""

import datetime
from typing import NamedTuple

from graphql import GraphQLFieldResolver

from proxy.sandbox import accounts
from proxy.sandbox.graphql import context

ORGANIZATION_ID = "5b1ac5f0-7d0a-4f0c-8a53-0e4a6f1f7c11"
ORGANIZATION_NAME = "Sandbox"


class Scope(NamedTuple):
    """A scope that an application may ask for."""

    application_id: str
    scope: str


class Security(NamedTuple):
    """The credentials of an application."""

    application_id: str
    client_id: str
    client_secret: str


class SupplyCounts(NamedTuple):
    """Parts used in this calendar month and parts allowed."""

    part_counter: int
    part_limit: int


class Application(NamedTuple):
    """An application."""

    scopes: list[Scope]
    supply_counts: SupplyCounts | None
    security: Security
    organization_id: str
    name: str
    description: str | None
    deleted: bool
    created_date: str
    id: str


class Organization(NamedTuple):
    """The organization of all applications. It has no users and no invitations."""

    users: tuple[()]
    invitations: tuple[()]
    applications: list[Application]
    is_default: bool
    name: str
    created_date: str
    id: str


def organizations(_root: None, info: context.Info) -> list[Organization]:
    """The one there is."""
    applications = [_application(account, info) for account in info.context.accounts.all]
    started = _moment(info.context.started)
    return [Organization((), (), applications, True, ORGANIZATION_NAME, started, ORGANIZATION_ID)]


def application(_root: None, info: context.Info, id: str) -> Application | None:
    """The application with this id (a GUID), or null."""
    account = info.context.accounts.by_application(id)
    return None if account is None else _application(account, info)


def _application(account: accounts.Account, info: context.Info) -> Application:
    id_ = account.application_id
    counts = SupplyCounts(info.context.accounting.used(id_), info.context.accounting.limit(account))
    return Application(
        [Scope(id_, scope) for scope in account.scopes],
        counts if accounts.SUPPLY_SCOPE in account.scopes else None,
        Security(id_, account.client_id, account.client_secret),
        ORGANIZATION_ID,
        account.name,
        None,
        False,
        _moment(info.context.started),
        id_,
    )


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


ATTRIBUTES: dict[str, str] = {}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.admOrganizations": organizations,
    "Query.admApplicationById": application,
}
