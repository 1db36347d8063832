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
    SecretSource,
    StoreKey,
    StoreUrl,
    digest,
    without_credentials,
)
from proxy.config.settings import (
    FEATURES,
    ApiKeySettings,
    ApplicationSettings,
    ApplicationShadowSettings,
    BreakerSettings,
    CacheSettings,
    CoalescingSettings,
    Config,
    ListenSettings,
    ListSettings,
    LogSettings,
    OverloadSettings,
    Period,
    ReconciliationSettings,
    ShadowSettings,
    TimeoutSettings,
    TlsSettings,
    TracingSettings,
    TranslationSettings,
    UpstreamSettings,
)

__all__ = [
    "FEATURES",
    "ApiKeySettings",
    "ApplicationSettings",
    "ApplicationShadowSettings",
    "BreakerSettings",
    "CacheSettings",
    "ClientId",
    "CoalescingSettings",
    "Config",
    "Digest",
    "File",
    "ListSettings",
    "ListenSettings",
    "LogSettings",
    "Network",
    "OverloadSettings",
    "Period",
    "ProxyAddress",
    "ReconciliationSettings",
    "Secret",
    "SecretSource",
    "ShadowSettings",
    "StoreKey",
    "StoreUrl",
    "TimeoutSettings",
    "TlsSettings",
    "TracingSettings",
    "TranslationSettings",
    "UpstreamSettings",
    "digest",
    "exposed",
    "load",
    "without_credentials",
]
