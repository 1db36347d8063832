"""The settings of the proxy: what may be set, what it is when it is not, and how a file becomes values.

The command line loads them once; every other room is handed the values it needs. Nothing here reads the
environment by itself or changes after start.
"""

from proxy.config.loader import load
from proxy.config.secret import ClientId, Digest, Secret, digest
from proxy.config.settings import (
    FEATURES,
    Answers,
    Application,
    Config,
    Listen,
    Lists,
    Log,
    Sharing,
    Translation,
    Upstream,
)

__all__ = [
    "FEATURES",
    "Answers",
    "Application",
    "ClientId",
    "Config",
    "Digest",
    "Listen",
    "Lists",
    "Log",
    "Secret",
    "Sharing",
    "Translation",
    "Upstream",
    "digest",
    "load",
]
