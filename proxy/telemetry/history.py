"""History of the last hour: what was counted between two moments, from the metrics of all processes. Pure.

Processes come and go, on other machines, too. So the counts of each source are compared with its own counts before,
and the differences are added up: a machine that is gone takes nothing away, and one that has run for days before this
process first saw it adds nothing but what it counts from then on.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import accumulate
from typing import Any, Self

import msgspec

from proxy.telemetry.metrics import SECONDS, Metrics

SAMPLE_SECONDS = 5.0  # between two samples
HISTORY_SECONDS = 3_600.0
BUCKETS = len(SECONDS) + 1
SOURCES = ("hit", "shared", "miss", "stale")  # where results came from


class Counts(msgspec.Struct, frozen=True):
    """What was counted. `failed` are responses with status 5xx, `refused` with 4xx; `buckets` are durations of requests
    by SECONDS, the last one above all bounds; `results` are queries by source, in the order of SOURCES."""

    requests: int = 0
    failed: int = 0
    refused: int = 0
    parts: int = 0
    operations: int = 0
    failed_operations: int = 0
    results: tuple[int, ...] = (0,) * len(SOURCES)
    buckets: tuple[int, ...] = (0,) * BUCKETS

    @classmethod
    def of(cls, metrics: Metrics, uncounted: Collection[str] = ()) -> Self:
        """Count metrics, without the requests of `uncounted` routes."""
        requests = {key: count for key, count in metrics.requests.items() if key[0] not in uncounted}
        durations = [counts for route, counts in metrics.request_seconds.counts.items() if route not in uncounted]
        operations = metrics.upstream_requests
        return cls(
            requests=int(sum(requests.values())),
            failed=_with_status(requests, "5"),
            refused=_with_status(requests, "4"),
            parts=int(sum(metrics.parts.values())),
            operations=int(sum(operations.values())),
            failed_operations=int(sum(number for (_, outcome), number in operations.items() if outcome != "ok")),
            results=tuple(int(metrics.queries[source,]) for source in SOURCES),
            buckets=tuple(map(sum, zip((0,) * BUCKETS, *durations, strict=True))),
        )

    def since(self, before: "Counts") -> "Counts":
        """Return what was counted after `before`; a count that fell, of a restarted process, counts as none."""
        return _combined(lambda now, then: max(0, now - then), self, before)

    def percentile(self, share: float) -> float | None:
        """Return the duration in seconds below which this share of the requests stayed; None without requests.

        Interpolated within its bucket, as Prometheus' histogram_quantile does; above all bounds it is the last bound.
        """
        total = sum(self.buckets)
        if not total:
            return None
        cumulative = list(accumulate(self.buckets))
        rank = share * total
        place = bisect_left(cumulative, rank)
        if place >= len(SECONDS):
            return SECONDS[-1]
        below = cumulative[place - 1] if place else 0
        lower = SECONDS[place - 1] if place else 0.0
        return lower + (SECONDS[place] - lower) * (rank - below) / self.buckets[place]


class Sample(msgspec.Struct, frozen=True):
    """What was counted in the `seconds` before `at`, in seconds since 1970."""

    at: float
    seconds: float
    counts: Counts


class CountSource(msgspec.Struct, frozen=True):
    """Counts of a process or machine that began to count at `started`, in seconds since 1970."""

    name: str
    started: float
    counts: Counts


class History(msgspec.Struct):
    """Samples of the last hour, oldest first, and the counts of each source at the last of them. Can be stored as
    JSON."""

    samples: list[Sample] = []
    sources: dict[str, Counts] = {}
    at: float | None = None

    def add(self, sources: Iterable[CountSource], now: float) -> None:
        """Add what the sources have counted since the last sample."""
        sources = list(sources)
        if self.at is not None and now > self.at:
            counts = total(each.counts.since(self._before(each, self.at)) for each in sources)
            self.samples.append(Sample(now, now - self.at, counts))
        self.samples = [each for each in self.samples if each.at > now - HISTORY_SECONDS]
        # Those that are gone are forgotten: one of the same name is another.
        self.sources = {each.name: each.counts for each in sources}
        self.at = now

    def window(self, now: float, seconds: float) -> Sample:
        """Return the samples of the last `seconds` as one; its own seconds are those that they cover, 0 for none."""
        # From the last sample on, so that it is not shortened by the time since then.
        since = max(self.at or 0.0, now - SAMPLE_SECONDS) - seconds
        last = [each for each in self.samples if each.at > since]
        return Sample(now, sum(each.seconds for each in last), total(each.counts for each in last))

    def series(self, now: float, points: int) -> list[Sample]:
        """Return the last hour as so many samples of equal length, oldest first; those without data are empty.

        The last one has just begun: their bounds do not move with the time, which would change all of them.
        """
        length = HISTORY_SECONDS / points
        now = math.ceil(now / length) * length
        groups: list[list[Sample]] = [[] for _ in range(points)]
        for each in self.samples:
            middle = each.at - each.seconds / 2
            groups[min(points - 1, max(0, int((middle - now + HISTORY_SECONDS) / length)))].append(each)
        return [
            Sample(
                now - HISTORY_SECONDS + (place + 1) * length,
                sum(each.seconds for each in group),
                total(each.counts for each in group),
            )
            for place, group in enumerate(groups)
        ]

    def _before(self, source: CountSource, since: float) -> Counts:
        """Return the counts of a source at the last sample: none for one that has begun since."""
        if source.name in self.sources:
            return self.sources[source.name]
        return Counts() if source.started >= since else source.counts


def total(counts: Iterable[Counts]) -> Counts:
    result = Counts()
    for each in counts:
        result = _combined(lambda left, right: left + right, result, each)
    return result


def _combined(combine: Callable[[int, int], int], left: Counts, right: Counts) -> Counts:
    """Combine two counts number by number."""
    values: dict[str, Any] = {}
    for name in Counts.__struct_fields__:
        pair = getattr(left, name), getattr(right, name)
        values[name] = tuple(map(combine, *pair)) if isinstance(pair[0], tuple) else combine(*pair)
    return Counts(**values)


def _with_status(requests: Mapping[tuple[str, ...], float], first: str) -> int:
    return int(sum(count for (_, status), count in requests.items() if status.startswith(first)))
