"""The settings of the proxy: what may be set, what it is when it is not, and how a file becomes values.

The command line loads them once; every other room is handed the values it needs. Nothing here reads the
environment by itself or changes after start.
"""

from proxy.config.exposure import exposed
from proxy.config.loader import load
from proxy.config.secret import (
    ClientId,
    Digest,
    File,
    Network,
    ProxyAddress,
    Secret,
    Source,
    StoreKey,
    StoreUrl,
    digest,
    without_credentials,
)
from proxy.config.settings import (
    FEATURES,
    Answers,
    Apikey,
    Application,
    Breaker,
    Config,
    Listen,
    Lists,
    Log,
    Overload,
    Period,
    Reconcile,
    Shadow,
    Shadowed,
    Sharing,
    Timeouts,
    Tls,
    Tracing,
    Translation,
    Upstream,
)

__all__ = [
    "FEATURES",
    "Answers",
    "Apikey",
    "Application",
    "Breaker",
    "ClientId",
    "Config",
    "Digest",
    "File",
    "Listen",
    "Lists",
    "Log",
    "Network",
    "Overload",
    "Period",
    "ProxyAddress",
    "Reconcile",
    "Secret",
    "Shadow",
    "Shadowed",
    "Sharing",
    "Source",
    "StoreKey",
    "StoreUrl",
    "Timeouts",
    "Tls",
    "Tracing",
    "Translation",
    "Upstream",
    "digest",
    "exposed",
    "load",
    "without_credentials",
]
