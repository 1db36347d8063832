"""Which scopes there are, and which of them an application may be given (contract graphql.md §4.3). Pure.

A domain's scope is the application's; the others are about a user, who has to have signed in for them.
"""

from proxy.sandbox import applications

OPENID, OFFLINE = "openid", "offline_access"
# What a user is told that each of them allows.
ABOUT_USERS = {
    OPENID: "know who you are",
    "profile": "see your name",
    "email": "see your e-mail address",
    "user.access": "act for you in the query service",
    OFFLINE: "go on doing so while you are away",
}
DOMAINS = {
    applications.SUPPLY_SCOPE: "look up parts, offers and prices",
    "design.domain": "read and change your designs",
}
ALL = {**ABOUT_USERS, **DOMAINS}


def granted(application: applications.SandboxApplication, asked: str | None, *, user: bool) -> tuple[str, ...] | None:
    """The scopes of a token: those asked for, each once; without any, all of an application that asks for itself. None
    where one may not be given, or a user's flow asks for none."""
    names = tuple(dict.fromkeys((asked or "").split()))
    allowed = {*application.scopes, *(ABOUT_USERS if user else ())}
    if not allowed.issuperset(names):
        return None
    if user:
        return names or None
    return names or application.scopes
