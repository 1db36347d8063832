"""Scopes, and which of them an application may be granted (contract graphql.md §4.3). Pure.

Scopes of domains belong to the application; the others are about a user and need a sign-in.
"""

from nexar_sandbox import applications

OPENID, OFFLINE = "openid", "offline_access"
# Descriptions on the consent page.
ABOUT_USERS = {
    OPENID: "know who you are",
    "profile": "see your name",
    "email": "see your e-mail address",
    "user.access": "act for you in the query service",
    OFFLINE: "keep this access while you are away",
}
DOMAINS = {
    applications.SUPPLY_SCOPE: "look up parts, offers and prices",
    "design.domain": "read and change your designs",
}
ALL = {**ABOUT_USERS, **DOMAINS}


def granted(
    application: applications.SandboxApplication, requested: str | None, *, user: bool
) -> tuple[str, ...] | None:
    """Scopes to grant: the requested ones; if none, all of an application without a user. None if a scope is not
    allowed, or if a user's grant requests none."""
    names = tuple(dict.fromkeys((requested or "").split()))
    available = {*application.scopes, *(ABOUT_USERS if user else ())}
    if not available.issuperset(names):
        return None
    if user:
        return names or None
    return names or application.scopes
