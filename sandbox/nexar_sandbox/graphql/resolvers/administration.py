"""The adm* queries (contract graphql.md §5.4): organizations with their users and applications, limited to the caller's
organization.

The service requires a user's token for these. The sandbox also accepts an application's own token, for the
application's organization: programs that watch their part count have no user.
"""

import datetime
from typing import Any

from graphql import GraphQLFieldResolver

from nexar_sandbox import applications, user_directory
from nexar_sandbox.graphql import context


def organizations(_root: None, info: context.Info) -> list[dict[str, Any]]:
    """Return the organization of the user, or of the application without a user; empty without one."""
    organization = info.context.user_directory.organization(_organization_id(info))
    return [] if organization is None else [_organization(organization, info)]


def application(_root: None, info: context.Info, id: str) -> dict[str, Any] | None:
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
    return info.context.applications.of_organization(organization)


def _organization(organization: user_directory.Organization, info: context.Info) -> dict[str, Any]:
    """A user is in one organization only, so it is the default one; there are no invitations."""
    return {
        "users": [_user(user, info) for user in info.context.user_directory.of_organization(organization.id)],
        "invitations": [],
        "applications": [_application(application, info) for application in _applications(organization.id, info)],
        "isDefault": True,
        "name": organization.name,
        "createdDate": _created_date(None, info),
        "id": organization.id,
    }


def _user(user: user_directory.SandboxUser, info: context.Info) -> dict[str, Any]:
    return {
        "userName": user.email,
        "firstName": user.given_name,
        "lastName": user.family_name,
        "createdDate": _created_date(None, info),
        "id": user.id,
    }


def _application(application: applications.SandboxApplication, info: context.Info) -> dict[str, Any]:
    id_, usage = application.application_id, info.context.part_usage
    counts = {"partCounter": usage.used_in_period(application), "partLimit": usage.limit(application)}
    return {
        "scopes": [{"applicationId": id_, "scope": scope} for scope in application.scopes],
        "supplyCounts": counts if applications.SUPPLY_SCOPE in application.scopes else None,
        "security": {
            "applicationId": id_,
            "clientId": application.client_id,
            "clientSecret": application.client_secret,
        },
        "organizationId": application.organization,
        "name": application.name,
        "description": application.description,
        "deleted": False,
        "createdDate": _created_date(application.created, info),
        "id": id_,
    }


def _created_date(created: float | None, info: context.Info) -> str:
    """RFC 3339 text; the start of the sandbox for default users and applications, which have no creation time."""
    seconds = info.context.started if created is None else created
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.admOrganizations": organizations,
    "Query.admApplicationById": application,
}
