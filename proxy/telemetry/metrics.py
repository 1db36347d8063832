"""What is counted and timed, in the words of Prometheus. Every room is handed the one Metrics of its process.

Labels are fixed words and names of applications: never an apikey, a uid or what a client wrote.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

M = TypeVar("M", Counter, Histogram)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Labelled(dict[str | tuple[str, ...], M], Generic[M]):
    """A metric's children by their labels, `requests["/v3/parts/match", "200"]`: made once, then only looked up."""

    def __init__(self, metric: M) -> None:
        super().__init__()
        self._child: Callable[..., M] = metric.labels

    def __missing__(self, labels: str | tuple[str, ...]) -> M:
        child = self[labels] = self._child(*((labels,) if isinstance(labels, str) else labels))
        return child


class Metrics:
    """`registry` is the process's own; the global one of the library stays unused."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.requests = Labelled(
            Counter("v3bridge_requests", "v3 requests answered", ["route", "status"], registry=registry)
        )
        self.request_seconds = Labelled(
            Histogram("v3bridge_request_seconds", "Time to a v3 reply", ["route"], buckets=SECONDS, registry=registry)
        )
        self.upstream_requests = Labelled(
            Counter("v3bridge_upstream_requests", "GraphQL requests", ["operation", "outcome"], registry=registry)
        )
        self.upstream_seconds = Labelled(
            Histogram(
                "v3bridge_upstream_seconds",
                "Time to a GraphQL answer",
                ["operation"],
                buckets=SECONDS,
                registry=registry,
            )
        )
        self.upstream_errors = Labelled(
            Counter("v3bridge_upstream_errors", "Errors beside usable data", ["operation"], registry=registry)
        )
        self.parts = Labelled(
            Counter(
                "v3bridge_parts_returned",
                "Parts that the service returned, and bills",
                ["application"],
                registry=registry,
            )
        )
        self.token_requests = Labelled(
            Counter("v3bridge_token_requests", "Token requests", ["application", "outcome"], registry=registry)
        )
        self.answers = Labelled(
            Counter("v3bridge_answers", "Look-ups of kept answers, hit or miss", ["outcome"], registry=registry)
        )

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
