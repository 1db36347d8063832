"""Evidence in the store: for each assumption counts, times, digests, and the smallest contradiction, redacted.

All processes add to one note for each service, under a lock. An example is content of the vendor, so it ends after 24
hours; counts and digests stay.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from proxy.kit.wording import rfc3339
from proxy.stores.protocols import Store

NOTE = "evidence"
LOCK = "evidence"
LOCK_SECONDS = 30.0
DAY_SECONDS = 86_400.0  # after which content ends
DIGESTS_MAX = 10

Tier = Literal["core", "complete", "strict"]


class ObservedAssumption(msgspec.Struct, frozen=True, omit_defaults=True):
    """What exchanges say about an assumption. Times are RFC 3339; `contradicted` is when it was contradicted last.

    `digests` are those of different contradictions. `example` is JSON: the smallest that was seen, at `example_at`.
    """

    id: str
    tier: Tier
    statement: str
    used_by: str = ""
    exchanges: int = 0
    contradicting: int = 0
    first: str = ""
    last: str = ""
    contradicted: str = ""
    digests: tuple[str, ...] = ()
    example: str = ""
    example_at: str = ""


class TrafficEvidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that the exchanges with a service say."""

    exchanges: int = 0
    observed: tuple[ObservedAssumption, ...] = ()

    @property
    def contradicted(self) -> tuple[ObservedAssumption, ...]:
        """The assumptions that an exchange contradicts."""
        return tuple(each for each in self.observed if each.contradicting)

    def recent(self, now: float) -> tuple[ObservedAssumption, ...]:
        """Return the assumptions that an exchange of the last day contradicts."""
        begin = rfc3339(now - DAY_SECONDS)
        return tuple(each for each in self.contradicted if each.contradicted >= begin)

    def current(self, now: float) -> "TrafficEvidence":
        """Return it without examples that have ended."""
        end = rfc3339(now - DAY_SECONDS)
        observed = (
            msgspec.structs.replace(each, example="", example_at="") if each.example_at < end else each
            for each in self.observed
        )
        return msgspec.structs.replace(self, observed=tuple(observed))


def service_of(host: str | None) -> Literal["Nexar", "another service"]:
    """Return the name under which evidence of a host is kept: no host but the vendor's is named."""
    return "Nexar" if host == "api.nexar.com" else "another service"


def merge(*parts: TrafficEvidence) -> TrafficEvidence:
    """Add up evidence of one service."""
    observed: dict[str, ObservedAssumption] = {}
    for each in (each for part in parts for each in part.observed):
        observed[each.id] = _added(observed[each.id], each) if each.id in observed else each
    return TrafficEvidence(sum(part.exchanges for part in parts), tuple(observed.values()))


def _added(one: ObservedAssumption, other: ObservedAssumption) -> ObservedAssumption:
    newer = max(one, other, key=lambda each: each.last)
    if one.statement != other.statement:
        return newer  # a newer program assumes something else
    examples = [each for each in (one, other) if each.example]
    # The same one again has the newer time: it ends a day after it was last seen.
    shown = min(examples, key=lambda each: (len(each.example), each.example, -_seconds(each.example_at)), default=newer)
    return msgspec.structs.replace(
        newer,
        exchanges=one.exchanges + other.exchanges,
        contradicting=one.contradicting + other.contradicting,
        first=min(filter(None, (one.first, other.first)), default=""),
        contradicted=max(one.contradicted, other.contradicted),
        digests=tuple(dict.fromkeys((*one.digests, *other.digests)))[:DIGESTS_MAX],
        example=shown.example,
        example_at=shown.example_at,
    )


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() if at else 0.0


async def stored(store: Store, now: float) -> dict[str, TrafficEvidence]:
    """Return the evidence by service, without what has ended. Raises StoreUnavailable."""
    return {service: each.current(now) for service, each in _decoded(await store.notes(NOTE)).items()}


async def add(store: Store, owner: str, new: Mapping[str, TrafficEvidence], now: float) -> bool:
    """Add evidence by service, and delete examples that have ended. Returns false where another process writes just
    now. Raises StoreUnavailable."""
    if not await store.lock(LOCK, owner, LOCK_SECONDS):
        return False
    try:
        before = _decoded(await store.notes(NOTE))
        for service in {*before, *(service for service, each in new.items() if each.exchanges)}:
            known = before.get(service, TrafficEvidence())
            merged = merge(known, new.get(service, TrafficEvidence())).current(now)
            if merged != known:
                await store.put_note(NOTE, service, msgspec.json.encode(merged).decode())
    finally:
        await store.unlock(LOCK, owner)
    return True


async def drop_ended(store: Store, owner: str, now: float) -> None:
    """Delete examples that have ended, which no process may add to any more. Raises StoreUnavailable."""
    kept = _decoded(await store.notes(NOTE))
    if any(each != each.current(now) for each in kept.values()):
        await add(store, owner, {}, now)


def _decoded(notes: Mapping[str, str]) -> dict[str, TrafficEvidence]:
    return {service: msgspec.json.decode(text, type=TrafficEvidence) for service, text in notes.items()}
