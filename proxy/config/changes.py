"""Changes between two configurations: which settings differ, and which of them wait for a restart. Pure, except that
`contents` reads the files that a configuration names.

Names are those of the file, such as `listen.connections` and `applications.demo.apikeys.erp.rate`; never a value.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from proxy import errors
from proxy.config.base import Settings
from proxy.config.settings import ApplicationSettings, Config
from proxy.kit import shipped

# Sockets are bound, the embedded sandbox is started and the store is opened once, at the start. A store that changed
# while requests are served would split the ledger: each half of the usage would stay within the limit.
NEEDS_RESTART = frozenset(
    ("listen.host", "listen.port", "listen.workers", "admin", "admin.host", "admin.port", "store", "upstream")
)
MAPPINGS = "mappings"  # the shipped files, among the names of `contents`


class ReloadResult(msgspec.Struct, frozen=True):
    """Result of a reload: names of settings that changed and of those that wait for a restart, or the mistakes that
    left the running configuration as it was. `at` is in seconds since 1970."""

    outcome: Literal["reloaded", "failed"]
    at: float
    changed: tuple[str, ...] = ()
    waiting_for_restart: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()


def contents(settings: Config) -> dict[str, str]:
    """Return a digest of each file that determines how requests are served, by the setting that names it: a file may
    change while its path stays the same."""
    named: dict[str, str | None] = {"uids": settings.uids}
    if settings.upstream != "sandbox":
        tls = settings.upstream.tls
        named |= {f"upstream.tls.{field}": getattr(tls, field) for field in tls.__struct_fields__}
    digests = {name: _digest(Path(file)) for name, file in named.items() if file is not None}
    return {MAPPINGS: shipped.digest(shipped.mapping_files()), **digests}


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names of files in both, whose content differs."""
    return [f"content of {name}" for name, digest in after.items() if before.get(name, digest) != digest]


def changed_settings(before: Config, after: Config) -> list[str]:
    """Return the names of all settings that differ, in the order of the file's documentation."""
    return list(_differences(before, after, ""))


def with_unchangeable(running: Config, wanted: Config) -> Config:
    """Return the wanted configuration with what waits for a restart as it is running.

    Raises ConfigError where the rest is of no use without it.
    """
    listen = msgspec.structs.replace(
        wanted.listen, host=running.listen.host, port=running.listen.port, workers=running.listen.workers
    )
    admin = wanted.admin
    if running.admin is False or admin is False:
        admin = running.admin
    else:
        admin = msgspec.structs.replace(admin, host=running.admin.host, port=running.admin.port)
    upstream = wanted.upstream
    if "sandbox" in (running.upstream, upstream):
        upstream = running.upstream
    merged = msgspec.structs.replace(wanted, listen=listen, admin=admin, store=running.store, upstream=upstream)
    # Only the sandbox serves applications without credentials.
    if upstream != "sandbox" and any(each.client_id is None for each in wanted.applications.values()):
        raise errors.ConfigError("upstream: the change to sandbox, which needs no credentials, needs a restart")
    return merged


def _differences(before: Any, after: Any, name: str) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, ApplicationSettings) and isinstance(after, ApplicationSettings):
        # By name, so that a key that is added in front does not make all others differ.
        yield from _mapping_differences(before.clients, after.clients, f"{name}.apikeys")
        before = msgspec.structs.replace(before, apikeys=after.apikeys)
    if isinstance(before, Settings) and type(before) is type(after):
        prefix = f"{name}." if name else ""
        for field in before.__struct_fields__:
            yield from _differences(getattr(before, field), getattr(after, field), prefix + field)
    elif isinstance(before, dict) and isinstance(after, dict):
        yield from _mapping_differences(before, after, name)
    else:
        yield name


def _mapping_differences(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> Iterator[str]:
    for key in dict.fromkeys((*before, *after)):
        inner = f"{name}.{key}"
        if key not in after:
            yield f"{inner} (removed)"
        elif key not in before:
            yield f"{inner} (added{_usage_left(before, after, after[key])})"
        else:
            yield from _differences(before[key], after[key], inner)


def _usage_left(before: Mapping[str, Any], after: Mapping[str, Any], added: Any) -> str:
    """Return what an application leaves behind that is only renamed: parts are counted by name."""
    if isinstance(added, ApplicationSettings) and added.client_id is not None:
        for name, each in before.items():
            if name not in after and each.client_id == added.client_id:
                return f"; it has the client_id of {name}, and parts that {name} has used do not count for its limit"
    return ""


def _digest(file: Path) -> str:
    try:
        return shipped.digest([file])
    except OSError:  # it is reported by whoever needs its content
        return "unreadable"
