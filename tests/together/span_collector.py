"""Collector of OpenTelemetry spans on a loopback socket: accepts OTLP over HTTP and keeps every payload."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from support import served


class Span(NamedTuple):
    """One span: ids in hex, attributes as plain values."""

    name: str
    trace: str
    id: str
    parent: str
    server: bool
    failed: bool
    attributes: dict[str, Any]


class SpanCollector:
    """The payloads received so far."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.url = ""

    @property
    def spans(self) -> list[Span]:
        """Every span of every payload."""
        return [span for payload in self.payloads for span in _spans(payload)]

    async def _take(self, request: web.Request) -> web.Response:
        self.payloads.append(await request.read())
        return web.Response(content_type="application/x-protobuf")


def _spans(payload: bytes) -> Iterator[Span]:
    sent = trace_service_pb2.ExportTraceServiceRequest.FromString(payload)
    for resource in sent.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.kind == trace_pb2.Span.SPAN_KIND_SERVER,
                    span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
                    {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes},
                )


@asynccontextmanager
async def running() -> AsyncIterator[SpanCollector]:
    """Accept spans while the block runs."""
    collector = SpanCollector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector._take)
    async with served.on_loopback(app) as url:
        collector.url = f"{url}/v1/traces"
        yield collector
