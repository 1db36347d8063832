"""Answers kept in memory for a while, bounded by their bytes, and how they are read for a projection.

Kept are a query's records as JSON, and the v3 items made of them for every projection that was asked for: an answer
that comes again is copied out, neither decoded nor mapped. A projection that shows less than the records hold is made
from them.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple

import cachetools
import msgspec

from proxy import config, errors, model
from proxy.kit import encoding
from proxy.kit.clock import Clock
from proxy.mapping.compiler import CompiledObject

VARIANTS_MAX = 4  # of one question: selections of which none holds the other
OVERHEAD = 400  # bytes that an answer takes beside its JSON


class Question(NamedTuple):
    """What is asked, whatever is shown of the answer; `context` is what mapping needs to know of it."""

    key: Hashable
    context: model.MappingContext


class Reading(NamedTuple):
    """How records become v3 items in one projection; `key` stands for the projection."""

    key: Hashable
    part: CompiledObject

    def items(self, records: list[Any], context: model.MappingContext) -> bytes:
        """A JSON list of v3's objects. What fits the schema can still hold a time or an id that is none."""
        try:
            return encoding.encode([self.part.map(record, context) for record in records])
        except (ValueError, OverflowError) as error:
            raise errors.UpstreamUnreadable("the upstream's answer holds a value that cannot be translated") from error


class Answer(NamedTuple):
    """The answer to a question: `items` is a JSON list of v3's objects. `until`, in the clock's monotonic seconds, is
    how long it may be given again: 0.0 not at all. `failure` is why there is none where that is not the question's own
    `error`.
    """

    items: bytes
    hits: int
    error: str | None = None
    failure: errors.BridgeError | None = None
    beside: Any = None
    until: float = 0.0

    @classmethod
    def failed(cls, failure: errors.BridgeError) -> "Answer":
        """None, for this reason."""
        return cls(b"[]", 0, failure.message, failure)


class _Variant(NamedTuple):
    """One selection's records, and the items made of them by projection."""

    fields: frozenset[str]
    records: bytes
    hits: int
    beside: Any
    until: float
    items: dict[Hashable, bytes]

    def size(self) -> int:
        return OVERHEAD + len(self.records) + sum(map(len, self.items.values()))


class ResponseCache:
    """By question, as the settings say: for some seconds an answer is fresh, for some more it stands in where there is
    no other."""

    def __init__(self, settings: config.CacheSettings, clock: Clock) -> None:
        self._seconds = settings.seconds
        self._clock = clock
        self._kept: cachetools.TLRUCache[Hashable, tuple[_Variant, ...]] = cachetools.TLRUCache(
            settings.bytes,
            lambda _, variants, __: max(variant.until for variant in variants) + settings.stale_seconds,
            timer=clock.monotonic,
            getsizeof=lambda variants: sum(variant.size() for variant in variants),
        )

    def get(self, question: Question, reading: Reading, *, stale: bool = False) -> Answer | None:
        """The answer, fresh unless a `stale` one will do; a failure where this projection shows what cannot be
        translated."""
        now = self._clock.monotonic()
        variants = self._kept.get(question.key, ())
        for variant in variants:
            if (stale or now < variant.until) and reading.part.fields <= variant.fields:
                try:
                    items = self._items(variant, variants, question, reading)
                except errors.UpstreamUnreadable as failure:
                    return None if stale else Answer.failed(failure)
                return Answer(items, variant.hits, beside=variant.beside, until=0.0 if stale else variant.until)
        return None

    def keep(self, question: Question, reading: Reading, records: list[Any], answer: Answer) -> Answer:
        """Keep an answer made of these records; gives it with its `until`."""
        until = self._clock.monotonic() + self._seconds
        fields = reading.part.fields
        variant = _Variant(
            fields, msgspec.json.encode(records), answer.hits, answer.beside, until, {reading.key: answer.items}
        )
        others = [other for other in self._kept.get(question.key, ()) if not other.fields <= fields]
        self._store(question, (variant, *others[: VARIANTS_MAX - 1]))
        return answer._replace(until=until)

    def _items(self, variant: _Variant, variants: tuple[_Variant, ...], question: Question, reading: Reading) -> bytes:
        items = variant.items.get(reading.key)
        if items is None:
            items = variant.items[reading.key] = reading.items(reading.part.decode(variant.records), question.context)
            self._store(question, variants)  # its size has changed; it may be too old by now
        return items

    def _store(self, question: Question, variants: tuple[_Variant, ...]) -> None:
        self._kept.pop(question.key, None)
        if sum(variant.size() for variant in variants) <= self._kept.maxsize:
            self._kept[question.key] = variants
