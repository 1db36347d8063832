"""Configuration: the settings in effect and where each comes from, the versions of the program, and reloading."""

from proxy import __version__, config, errors
from proxy.config import origins
from proxy.config.origins import ConfigurationOrigin, EffectiveSetting
from proxy.kit import daemon_thread, located_yaml, shipped
from proxy.web.admin.page import ActionResult, AdminAction, AdminContext, AdminPage, PageData, Query

NAMES_MAX = 5  # that the message of a reload names; the page has all
READ_SECONDS = 5.0  # for the configuration and the files that it names


class ConfigurationPage(PageData, frozen=True, kw_only=True):
    """Configuration in effect since `loaded` (seconds since 1970).

    `schema` and `mappings` are digests of the files that the program came with. `file` is null where the settings come
    from none; `is_changed`: it was written since. `problem` says why the places of settings are missing. `can_reload`:
    whether the service can be told to read the file again; `last_reload` is null before the first time.
    """

    version: str
    schema: str
    mappings: str
    file: str | None
    is_shipped: bool
    loaded: float
    is_changed: bool
    can_reload: bool
    last_reload: config.ReloadResult | None
    settings: tuple[EffectiveSetting, ...]
    problem: str | None = None


async def _data(context: AdminContext, _: Query) -> ConfigurationPage:
    # In a thread: it reads the file, and those that the digests are made of.
    try:
        return await daemon_thread.call(lambda: _page(context), READ_SECONDS)
    except TimeoutError:
        raise errors.ServerError(f"the configuration could not be read within {READ_SECONDS:g} seconds") from None


def _page(context: AdminContext) -> ConfigurationPage:
    service = context.service
    settings, origin, problem = service.gateway.settings, service.origin, None
    try:
        effective = origins.effective_settings(settings, origin)
    except located_yaml.YamlError as error:
        effective, problem = origins.effective_settings(settings, None), str(error)
    schema, mappings = shipped.versions()
    # Of the last reload that succeeded; the first one is the start.
    loaded = service.gateway.metrics.last_reload_success[()]
    return ConfigurationPage(
        version=__version__,
        schema=schema,
        mappings=mappings,
        file=None if origin is None else str(origin.file),
        is_shipped=origin is not None and origin.is_shipped,
        loaded=loaded,
        is_changed=origin is not None and _was_written_after(origin, loaded),
        can_reload=service.reload is not None,
        last_reload=service.last_reload,
        settings=tuple(effective),
        problem=problem,
    )


def _was_written_after(origin: ConfigurationOrigin, moment: float) -> bool:
    try:
        return origin.file.stat().st_mtime > moment
    except OSError:
        return False


async def _reload(context: AdminContext, _: Query) -> ActionResult:
    reload = context.service.reload
    if reload is None:
        raise errors.BadRequest("this service has no configuration file to read again")
    result = await reload()
    if result.outcome == "failed":
        more = len(result.mistakes) - 1
        others = f" ({more} more below)" if more > 0 else ""
        return ActionResult(f"The configuration stays as it was: {result.mistakes[0]}{others}")
    waiting = f" {_names(result.waiting_for_restart)} wait for a restart." if result.waiting_for_restart else ""
    changed = f"changed: {_names(result.changed)}." if result.changed else "nothing has changed."
    return ActionResult(f"The configuration is reloaded; {changed}{waiting}")


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(names[:NAMES_MAX]) + more


PAGE = AdminPage(
    "configuration",
    "Configuration",
    "Settings in effect with their sources, versions, and the last reload.",
    ConfigurationPage,
    _data,
)
ACTIONS = (AdminAction("/configuration/reload", "configuration", "Read the configuration file again.", _reload),)
