"""What is counted and timed, in the words of Prometheus. Every room is handed the one Metrics of its process.

Labels are fixed words and names of applications: never an apikey, a uid or what a client wrote.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """`registry` is the process's own; the global one of the library stays unused."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.requests = Counter("v3bridge_requests", "v3 requests answered", ["route", "status"], registry=registry)
        self.request_seconds = Histogram(
            "v3bridge_request_seconds", "Time to a v3 reply", ["route"], buckets=SECONDS, registry=registry
        )
        self.upstream_requests = Counter(
            "v3bridge_upstream_requests", "GraphQL requests", ["operation", "outcome"], registry=registry
        )
        self.upstream_seconds = Histogram(
            "v3bridge_upstream_seconds",
            "Time to a GraphQL answer",
            ["operation"],
            buckets=SECONDS,
            registry=registry,
        )
        self.upstream_errors = Counter(
            "v3bridge_upstream_errors", "Errors beside usable data", ["operation"], registry=registry
        )
        self.parts = Counter(
            "v3bridge_parts_returned",
            "Parts that the service returned, and bills",
            ["application"],
            registry=registry,
        )
        self.token_requests = Counter(
            "v3bridge_token_requests", "Token requests", ["application", "outcome"], registry=registry
        )
        self.answers = Counter(
            "v3bridge_answers", "Look-ups of kept answers, hit or miss", ["outcome"], registry=registry
        )

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
