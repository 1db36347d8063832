"""Spans for OpenTelemetry: one a v3 request, one below it for each operation asked of the service. Off unless set up.

The web edge and the upstream client are handed a Tracing only where the configuration names a collector; else nothing
of OpenTelemetry is imported. Spans hold names, statuses and numbers: no address, no query, no text of an exception.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from proxy import errors

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

SEND_SECONDS = 5.0  # for one batch of spans, and for all that is left when the program ends


class Tracing:
    """Makes spans and sends them in batches, from a thread of its own; ends with `close`."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation import tracecontext

        self._provider = provider
        self._tracer = provider.get_tracer("v3bridge")
        self._propagator = tracecontext.TraceContextTextMapPropagator()
        self._kind, self._status = trace.SpanKind, trace.Status(trace.StatusCode.ERROR)

    @contextmanager
    def request(self, traceparent: str | None) -> Iterator["Span"]:
        """A v3 request's span, in its caller's trace where there is one. Its status is for whoever sees the reply."""
        caller = self._propagator.extract({"traceparent": traceparent}) if traceparent else None
        with self._tracer.start_as_current_span(
            "request", caller, self._kind.SERVER, record_exception=False, set_status_on_exception=False
        ) as span:
            yield span

    @contextmanager
    def call(self, operation: str) -> Iterator[None]:
        """A span for one operation; its outcome is `ok` or the error that comes out of the block."""
        with self._tracer.start_as_current_span(
            operation, kind=self._kind.CLIENT, record_exception=False, set_status_on_exception=False
        ) as span:
            outcome = "ok"
            try:
                yield
            except BaseException as error:
                outcome = type(error).__name__
                self.failed(span)
                raise
            finally:
                span.set_attributes({"v3bridge.operation": operation, "v3bridge.outcome": outcome})

    def failed(self, span: "Span") -> None:
        """Mark a span as an error."""
        span.set_status(self._status)

    async def close(self) -> None:
        """Send what is left; a collector that does not answer is waited for no longer than SEND_SECONDS."""
        last = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        last.start()
        await asyncio.to_thread(last.join, SEND_SECONDS)


def open_tracing(otlp_url: str, share: float) -> Tracing:
    """Spans of this `share` of requests go to the collector at `otlp_url`. Raises ConfigError without the packages.

    A caller that has a trace of its own has decided already whether it is kept.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http import trace_exporter
        from opentelemetry.sdk import resources, trace
        from opentelemetry.sdk.trace import export, sampling
    except ImportError as error:
        raise errors.ConfigError(
            f"tracing.otlp_url: the package {error.name} is not installed; it comes with v3bridge[otel]"
        ) from error
    provider = trace.TracerProvider(
        sampler=sampling.ParentBased(sampling.TraceIdRatioBased(share)),
        resource=resources.Resource({"service.name": "v3bridge"}),
        shutdown_on_exit=False,
    )
    exporter = trace_exporter.OTLPSpanExporter(otlp_url, timeout=SEND_SECONDS)
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    return Tracing(provider)
