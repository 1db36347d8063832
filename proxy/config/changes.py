"""Reload of a configuration: what of it waits for a restart."""

from msgspec.structs import replace

from proxy import errors
from proxy.config.settings import Config


def with_unchangeable(running: Config, wanted: Config) -> tuple[Config, list[str]]:
    """Return the wanted configuration with what waits for a restart as it is running, and the names of these blocks.

    Sockets, workers, the embedded sandbox and the store are those of the start: a store that changed while requests are
    served would split the ledger. Raises ConfigError where the rest is of no use without it.
    """
    bound = running.listen
    listen = replace(wanted.listen, host=bound.host, port=bound.port, workers=bound.workers)
    admin = running.admin
    if admin and wanted.admin:
        admin = replace(wanted.admin, host=admin.host, port=admin.port)
    upstream = running.upstream if "sandbox" in (running.upstream, wanted.upstream) else wanted.upstream
    merged = replace(wanted, listen=listen, admin=admin, store=running.store, upstream=upstream)
    # Only the sandbox serves applications without credentials.
    if upstream != "sandbox" and any(each.client_id is None for each in wanted.applications.values()):
        raise errors.ConfigError("upstream: the change to sandbox, which needs no credentials, needs a restart")
    names = ("store", "listen", "admin", "upstream")
    return merged, [name for name in names if getattr(merged, name) != getattr(wanted, name)]
