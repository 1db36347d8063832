"""Configuration: the settings in effect and where each comes from, the versions of the program, and reloading."""

import asyncio

from proxy import __version__
from proxy.config import origins
from proxy.config.origins import ConfigurationOrigin, EffectiveSetting
from proxy.kit import located_yaml, shipped
from proxy.web.admin.context import AdminContext
from proxy.web.admin.page import AdminPage, PageData, Query


class ConfigurationPage(PageData, frozen=True, kw_only=True):
    """Configuration in effect since `loaded` (seconds since 1970).

    `schema` and `mappings` are digests of the files that the program came with. `file` is null where the settings come
    from none; `is_changed`: it was written since. `problem` says why the places of settings are missing.
    """

    version: str
    schema: str
    mappings: str
    file: str | None
    is_shipped: bool
    loaded: float
    is_changed: bool
    settings: tuple[EffectiveSetting, ...]
    problem: str | None = None


async def _data(context: AdminContext, _: Query) -> ConfigurationPage:
    # In a thread: it reads the file, and those that the digests are made of.
    return await asyncio.to_thread(_page, context)


def _page(context: AdminContext) -> ConfigurationPage:
    service = context.service
    settings, origin, problem = service.gateway.settings, service.origin, None
    try:
        effective = origins.effective_settings(settings, origin)
    except located_yaml.YamlError as error:
        effective, problem = origins.effective_settings(settings, None), str(error)
    schema, mappings = shipped.versions()
    loaded = context.started
    return ConfigurationPage(
        version=__version__,
        schema=schema,
        mappings=mappings,
        file=None if origin is None else str(origin.file),
        is_shipped=origin is not None and origin.is_shipped,
        loaded=loaded,
        is_changed=origin is not None and _was_written_after(origin, loaded),
        settings=tuple(effective),
        problem=problem,
    )


def _was_written_after(origin: ConfigurationOrigin, moment: float) -> bool:
    try:
        return origin.file.stat().st_mtime > moment
    except OSError:
        return False


PAGE = AdminPage(
    "configuration",
    "Configuration",
    "Settings in effect with their sources, versions, and the last reload.",
    ConfigurationPage,
    _data,
)
