"""Reload of a configuration: what of it waits for a restart, and the contents of the files that it names."""

from pathlib import Path

import msgspec

from proxy import errors
from proxy.config.settings import Config
from proxy.kit import shipped

MAPPINGS = "mappings"  # the shipped files, among the names of `contents`


def contents(settings: Config) -> dict[str, str]:
    """Return a digest of each file that determines how requests are served, by the setting that names it: a file may
    change while its path stays the same."""
    named: dict[str, str | None] = {"uids": settings.uids}
    if settings.upstream != "sandbox":
        tls = settings.upstream.tls
        named |= {f"upstream.tls.{field}": getattr(tls, field) for field in tls.__struct_fields__}
    digests = {name: _digest(Path(file)) for name, file in named.items() if file is not None}
    return {MAPPINGS: shipped.digest(shipped.mapping_files()), **digests}


def with_unchangeable(running: Config, wanted: Config) -> tuple[Config, list[str]]:
    """Return the wanted configuration with what waits for a restart as it is running, and the names of these settings.

    Sockets, workers, the embedded sandbox and the store are those of the start: a store that changed while requests are
    served would split the ledger. Raises ConfigError where the rest is of no use without it.
    """
    waiting = [] if running.store == wanted.store else ["store"]
    listen, admin, upstream = wanted.listen, wanted.admin, wanted.upstream
    for name in ("host", "port", "workers"):
        if getattr(running.listen, name) != getattr(listen, name):
            listen = msgspec.structs.replace(listen, **{name: getattr(running.listen, name)})
            waiting.append(f"listen.{name}")
    if not (admin and running.admin):
        waiting += [] if admin == running.admin else ["admin"]
        admin = running.admin
    elif (admin.host, admin.port) != (running.admin.host, running.admin.port):
        admin = msgspec.structs.replace(admin, host=running.admin.host, port=running.admin.port)
        waiting.append("admin")
    if upstream != running.upstream and "sandbox" in (running.upstream, upstream):
        upstream = running.upstream
        waiting.append("upstream")
    merged = msgspec.structs.replace(wanted, listen=listen, admin=admin, store=running.store, upstream=upstream)
    # Only the sandbox serves applications without credentials.
    if upstream != "sandbox" and any(each.client_id is None for each in wanted.applications.values()):
        raise errors.ConfigError("upstream: the change to sandbox, which needs no credentials, needs a restart")
    return merged, waiting


def _digest(file: Path) -> str:
    try:
        return shipped.digest([file])
    except OSError:  # it is reported by whoever needs its content
        return "unreadable"
