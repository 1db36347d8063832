"""Paths of the identity service, and its discovery document (OpenID Connect Discovery 1.0 §3)."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nexar_sandbox import applications
from nexar_sandbox.identity import authorization_endpoint, login, scopes

TOKEN_PATH = "/connect/token"  # noqa: S105 (a path, no secret)
USERINFO_PATH, REVOCATION_PATH, INTROSPECTION_PATH = "/connect/userinfo", "/connect/revocation", "/connect/introspect"
DISCOVERY_PATH = "/.well-known/openid-configuration"
JWKS_PATH = DISCOVERY_PATH + "/jwks"
# Endpoints with CORS, as in IdentityServer: introspection is for servers.
CROSS_ORIGIN_PATHS = (DISCOVERY_PATH, JWKS_PATH, TOKEN_PATH, USERINFO_PATH, REVOCATION_PATH)
# What is the same for all applications.
FACTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PATHS = {
    "jwks_uri": JWKS_PATH,
    "authorization_endpoint": authorization_endpoint.AUTHORIZE_PATH,
    "token_endpoint": TOKEN_PATH,
    "userinfo_endpoint": USERINFO_PATH,
    "end_session_endpoint": login.END_SESSION_PATH,
    "revocation_endpoint": REVOCATION_PATH,
    "introspection_endpoint": INTROSPECTION_PATH,
}


def document(issuer: str, registry: Iterable[applications.SandboxApplication]) -> dict[str, Any]:
    """Return the document for the scopes and grant types of these applications."""
    known = tuple(registry)
    flows = {flow for application in known for flow in application.flows}
    by_users = bool(flows - {applications.CLIENT_CREDENTIALS})
    domains = {scope for application in known for scope in application.scopes}
    return {
        "issuer": issuer,
        **{name: issuer + path for name, path in PATHS.items()},
        "scopes_supported": sorted(domains | set(scopes.ABOUT_USERS if by_users else ())),
        "grant_types_supported": sorted(flows | ({"refresh_token"} if by_users else set())),
        **FACTS,
    }
