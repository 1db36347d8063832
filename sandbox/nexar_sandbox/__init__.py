"""The Nexar services simulated on one machine, for programs and tests that have no account.

    with nexar_sandbox.running() as sandbox:  # `async with nexar_sandbox.serve()` in an event loop
        print(sandbox.graphql_url, sandbox.token_url, sandbox.client_id, sandbox.client_secret)
        ...
        print(sandbox.billed_parts)

The public interface is `__all__` with the module `faults`. A name's module is imported when the name is first used, so
that a plug-in may name this package without a cost.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexar_sandbox.app import Sandbox, running, serve
    from nexar_sandbox.applications import (
        DEFAULT_APPLICATION,
        DEFAULT_DESIGN_APPLICATION,
        SandboxApplication,
        with_plan,
    )
    from nexar_sandbox.catalog.loader import SHIPPED
    from nexar_sandbox.catalog.records import Part
    from nexar_sandbox.catalog.store import Catalog, open_catalog
    from nexar_sandbox.catalog.units import exchange_rate
    from nexar_sandbox.faults import parse_faults
    from nexar_sandbox.identity.tokens import SigningKey, generate_key
    from nexar_sandbox.legacy_v3.service import LegacySettings
    from nexar_sandbox.settings import SandboxSettings
    from nexar_sandbox.user_directory import DEFAULT_ORGANIZATION, DEFAULT_PASSWORD, DEFAULT_USERS, SandboxUser

__version__ = "0.2.0"

__all__ = [
    "DEFAULT_APPLICATION",
    "DEFAULT_DESIGN_APPLICATION",
    "DEFAULT_ORGANIZATION",
    "DEFAULT_PASSWORD",
    "DEFAULT_USERS",
    "SHIPPED",
    "Catalog",
    "LegacySettings",
    "Part",
    "Sandbox",
    "SandboxApplication",
    "SandboxSettings",
    "SandboxUser",
    "SigningKey",
    "exchange_rate",
    "generate_key",
    "open_catalog",
    "parse_faults",
    "running",
    "serve",
    "with_plan",
]

_NAMES_BY_MODULE = {
    "app": ("Sandbox", "running", "serve"),
    "applications": ("DEFAULT_APPLICATION", "DEFAULT_DESIGN_APPLICATION", "SandboxApplication", "with_plan"),
    "catalog.loader": ("SHIPPED",),
    "catalog.records": ("Part",),
    "catalog.store": ("Catalog", "open_catalog"),
    "catalog.units": ("exchange_rate",),
    "faults": ("parse_faults",),
    "identity.tokens": ("SigningKey", "generate_key"),
    "legacy_v3.service": ("LegacySettings",),
    "settings": ("SandboxSettings",),
    "user_directory": ("DEFAULT_ORGANIZATION", "DEFAULT_PASSWORD", "DEFAULT_USERS", "SandboxUser"),
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES_BY_MODULE.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
