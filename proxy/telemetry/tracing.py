"""OpenTelemetry spans: one for each v3 request, with a child for each GraphQL operation. Off unless configured.

Without a collector in the configuration nothing of OpenTelemetry is imported. Spans hold names, statuses and numbers:
no address, no query, no message of an exception.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from proxy import errors
from proxy.kit import extras

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

SEND_SECONDS = 5.0  # limit for sending one batch, and for sending the rest at the end


class Tracing:
    """Makes spans and exports them in batches from a thread of its own, until `close`."""

    def __init__(self, provider: "TracerProvider") -> None:
        # Imported here, because the packages are an extra (otel).
        from opentelemetry import trace
        from opentelemetry.trace.propagation import tracecontext

        self._provider = provider
        self._tracer = provider.get_tracer("v3bridge")
        self._propagator = tracecontext.TraceContextTextMapPropagator()
        self._kind, self._status = trace.SpanKind, trace.Status(trace.StatusCode.ERROR)

    @contextmanager
    def request(self, traceparent: str | None) -> Iterator["Span"]:
        """Span of a v3 request, in the trace of `traceparent` if given. The caller sets its status."""
        caller = self._propagator.extract({"traceparent": traceparent}) if traceparent else None
        with self._tracer.start_as_current_span(
            # no record of an exception: its message could hold text of the client
            "request",
            caller,
            self._kind.SERVER,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """Span of a GraphQL operation; its outcome is `ok` or the type of the exception raised in the block."""
        with self._tracer.start_as_current_span(
            name, kind=self._kind.CLIENT, record_exception=False, set_status_on_exception=False
        ) as span:
            outcome = "ok"
            try:
                yield
            except BaseException as error:
                outcome = type(error).__name__
                self.failed(span)
                raise
            finally:
                span.set_attributes({"v3bridge.operation": name, "v3bridge.outcome": outcome})

    def failed(self, span: "Span") -> None:
        span.set_status(self._status)

    async def close(self) -> None:
        """Send the remaining spans, for at most SEND_SECONDS."""
        # The provider may wait for a collector that is gone; a daemon thread does not keep the process alive for it.
        last = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        last.start()
        await asyncio.to_thread(last.join, SEND_SECONDS)


def open_tracing(otlp_url: str, share: float) -> Tracing:
    """Open tracing to the collector at `otlp_url` for a `share` of requests, 0 to 1.

    A request with a `traceparent` keeps the sampling decision of its caller. Raises ConfigError if the packages of
    the extra otel are missing.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http import trace_exporter
        from opentelemetry.sdk import resources, trace
        from opentelemetry.sdk.trace import export, sampling
    except ImportError as error:
        raise errors.ConfigError(
            f"tracing.otlp_url: the package {error.name} is not installed; {extras.install_line('otel')}"
        ) from error
    provider = trace.TracerProvider(
        sampler=sampling.ParentBased(sampling.TraceIdRatioBased(share)),
        resource=resources.Resource({"service.name": "v3bridge"}),
        # `close` does it within a time limit; the library would do it at exit without one
        shutdown_on_exit=False,
    )
    exporter = trace_exporter.OTLPSpanExporter(otlp_url, timeout=SEND_SECONDS)
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    return Tracing(provider)
