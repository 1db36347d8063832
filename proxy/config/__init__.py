"""Settings of the service: types, defaults and limits; `loader.py` reads the YAML file.

The command line loads them once and passes each package the values that it needs. Nothing here reads the environment
by itself or changes after start.
"""

from proxy.config.secret import (
    ClientId,
    Digest,
    File,
    Network,
    OperatorsToken,
    ProxyAddress,
    Secret,
    StoreUrl,
    digest,
    without_credentials,
)
from proxy.config.settings import (
    CONNECT_SECONDS,
    FEATURES,
    HEALTH_CHECK_CONNECTIONS,
    PARTS_MAX,
    RESERVED_FILES,
    UPSTREAM_CONNECTIONS,
    WORKBOOK_LOGIN,
    AdminSettings,
    ApiKeySettings,
    ApplicationSettings,
    CacheSettings,
    ClientSettings,
    Config,
    Feature,
    ListenSettings,
    LogSettings,
    Period,
    SunsetSettings,
    TranslationSettings,
    UpstreamSettings,
)
