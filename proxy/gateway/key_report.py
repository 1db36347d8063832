"""Report on API keys: those of the configuration, and those that programs send and no application has."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from proxy import config, errors
from proxy.config.secret import FINGERPRINT
from proxy.kit.wording import rfc3339
from proxy.stores.protocols import CallerStore
from proxy.telemetry.callers import UnknownKey


class ApiKeyRow(msgspec.Struct, frozen=True):
    """An API key of the configuration. `expires` is its last day of service, null without one; `rate` in requests a
    second, 0 for no limit; `parts` null for no limit of its own."""

    application: str
    name: str
    expires: str | None
    expired: bool
    parts: int | None
    rate: int


class UnknownKeyRow(msgspec.Struct, frozen=True):
    """An API key that no application has. `fingerprint` are the first hex digits of its SHA-256, as many as tell it
    from the others; `address` and `user_agent` are those of its last request."""

    fingerprint: str
    address: str
    user_agent: str
    first_seen: str
    last_seen: str
    requests: int


def configured_keys(applications: Mapping[str, config.ApplicationSettings], now: float) -> list[ApiKeyRow]:
    """Return the API keys in the order of the file."""
    today = datetime.fromtimestamp(now, UTC).date()
    return [
        ApiKeyRow(
            application=name,
            name=key_name,
            expires=None if key.expires is None else str(key.expires),
            expired=key.expires is not None and key.expires < today,
            parts=application.parts_of(key),
            rate=application.rate if key.rate is None else key.rate,
        )
        for name, application in applications.items()
        for key_name, key in application.clients.items()
    ]


async def unknown_keys(
    store: CallerStore, applications: Mapping[str, config.ApplicationSettings]
) -> dict[str, UnknownKey]:
    """Return the API keys that still no application has, by fingerprint, the last one first."""
    known = {key.key.reveal() for application in applications.values() for key in application.apikeys}
    unknown = [each for each in await store.unknown_keys() if each.digest not in known]
    lengths = _lengths(each.digest for each in unknown)
    return {each.digest[: lengths[each.digest]]: each for each in unknown}


def unknown_rows(unknown: Mapping[str, UnknownKey]) -> list[UnknownKeyRow]:
    return [
        UnknownKeyRow(
            fingerprint, each.address, each.user_agent, rfc3339(each.first), rfc3339(each.last), each.requests
        )
        for fingerprint, each in unknown.items()
    ]


def unknown_digest(unknown: Mapping[str, UnknownKey], fingerprint: str) -> config.Digest:
    """Return the digest of an unknown key by its fingerprint, or more digits of it. Raises BadRequest."""
    found = [each.digest for each in unknown.values() if each.digest.startswith(fingerprint.lower())]
    if len(fingerprint) < FINGERPRINT or len(found) != 1:
        listed = ", ".join(unknown) or "none"
        raise errors.BadRequest(f"{fingerprint!r} is the fingerprint of no unknown API key, or of several: {listed}")
    return config.Digest(bytes.fromhex(found[0]))


def _lengths(digests: Iterable[str]) -> dict[str, int]:
    """Return of each digest how many digits tell it from the others."""
    ordered = sorted(digests)
    lengths = dict.fromkeys(ordered, FINGERPRINT)
    for one, other in pairwise(ordered):
        needed = next(place for place, (a, b) in enumerate(zip(one, other, strict=True), 1) if a != b)
        lengths[one], lengths[other] = max(lengths[one], needed), max(lengths[other], needed)
    return lengths
