"""The adm* queries (contract graphql.md §5.4): organizations with their users and applications, limited to the caller's
organization.

The service requires a user's token for these. The sandbox also accepts an application's own token, for the
application's organization: programs that watch their part count have no user. Deleted applications are listed as
deleted.
"""

import datetime
from typing import NamedTuple

from graphql import GraphQLFieldResolver

from nexar_sandbox import applications, user_directory
from nexar_sandbox.graphql import context


class AdmApplicationScope(NamedTuple):
    application_id: str
    scope: str


class AdmApplicationSecurity(NamedTuple):
    application_id: str
    client_id: str
    client_secret: str


class AdmSupplyCounts(NamedTuple):
    """Parts used in this calendar month and parts allowed."""

    part_counter: int
    part_limit: int


class AdmApplication(NamedTuple):
    """An application; `supply_counts` is None if it may not request supply data."""

    scopes: list[AdmApplicationScope]
    supply_counts: AdmSupplyCounts | None
    security: AdmApplicationSecurity
    organization_id: str
    name: str
    description: str | None
    deleted: bool
    created_date: str
    id: str


class AdmUser(NamedTuple):
    """A member; `user_name` is the address that the user signs in with."""

    user_name: str
    first_name: str
    last_name: str
    created_date: str
    id: str


class AdmOrganization(NamedTuple):
    """An organization. A user is in one only, so it is the default one; there are no invitations."""

    users: list[AdmUser]
    invitations: tuple[()]
    applications: list[AdmApplication]
    is_default: bool
    name: str
    created_date: str
    id: str


def organizations(_root: None, info: context.Info) -> list[AdmOrganization]:
    """Return the organization of the user, or of the application without a user; empty if it was deleted."""
    organization = info.context.user_directory.organization(_organization_id(info))
    return [] if organization is None else [_organization(organization, info)]


def application(_root: None, info: context.Info, id: str) -> AdmApplication | None:
    """Return the application with this id (a GUID, in either case of letters) of the same organization, or null."""
    matching = (
        application
        for application in _applications(_organization_id(info), info)
        if application.application_id.lower() == id.lower()
    )
    application_ = next(matching, None)
    return None if application_ is None else _application(application_, info)


def _organization_id(info: context.Info) -> str:
    if info.context.user is not None:
        user = info.context.user_directory.by_id(info.context.user)
        return user.organization if user else ""
    return info.context.application.organization if info.context.application else ""


def _applications(organization: str, info: context.Info) -> tuple[applications.SandboxApplication, ...]:
    registry = info.context.applications
    return (*registry.of_organization(organization), *registry.deleted_by(organization))


def _organization(organization: user_directory.Organization, info: context.Info) -> AdmOrganization:
    return AdmOrganization(
        [_user(user, info) for user in info.context.user_directory.of_organization(organization.id)],
        (),
        [_application(application, info) for application in _applications(organization.id, info)],
        True,
        organization.name,
        _created_date(organization.created, info),
        organization.id,
    )


def _user(user: user_directory.SandboxUser, info: context.Info) -> AdmUser:
    return AdmUser(user.email, user.given_name, user.family_name, _created_date(user.created, info), user.id)


def _application(application: applications.SandboxApplication, info: context.Info) -> AdmApplication:
    id_ = application.application_id
    counts = AdmSupplyCounts(
        info.context.part_usage.used_in_period(application), info.context.part_usage.limit(application)
    )
    return AdmApplication(
        [AdmApplicationScope(id_, scope) for scope in application.scopes],
        counts if applications.SUPPLY_SCOPE in application.scopes else None,
        AdmApplicationSecurity(id_, application.client_id, application.client_secret),
        application.organization,
        application.name,
        application.description,
        application.deleted,
        _created_date(application.created, info),
        id_,
    )


def _created_date(created: float | None, info: context.Info) -> str:
    """RFC 3339 text; the start of the sandbox for default users and applications, which have no creation time."""
    seconds = info.context.started if created is None else created
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


ATTRIBUTES: dict[str, str] = {}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.admOrganizations": organizations,
    "Query.admApplicationById": application,
}
