"""Pages on operation match the code: metrics, health checks, log fields, and fragments of a configuration."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
import yaml
from support import log_lines, running_proxy, scripted_upstream

from proxy import config
from proxy.config import loader
from proxy.telemetry import metrics

PAGES = ("docs/how-to/operate.md", "docs/how-to/end-a-migration.md", "docs/how-to/deploy.md", "docs/how-to/admin.md")
ENVIRONMENT = {
    "V3BRIDGE_ADMIN_TOKEN": "a-token-of-the-operators",
    "V3BRIDGE_READ_TOKEN": "a-token-of-the-readers",
    "V3BRIDGE_OIDC_SECRET": "a-client-secret",
}


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/how-to/operate.md"]


def _row(measure: Any) -> Any:
    """A measure as a row of the table has it."""
    family = measure.family()
    name = f"{family.name}_total" if family.type == "counter" else family.name
    # The page says so of all metrics.
    assert family.type == (
        "histogram" if name.endswith("duration_seconds") else "counter" if "_total" in name else "gauge"
    )
    return [f"`{name}`", ", ".join(measure.labels), family.documentation]


def test_documented_metrics_are_those_of_the_code(pages: Any) -> None:
    measures = metrics.Metrics(prometheus_client.CollectorRegistry()).measures().values()
    assert pages["docs/reference/monitoring.md"].table("metric") == [_row(measure) for measure in measures]


async def test_readiness_failure_has_the_documented_message(page: Any) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        async with running_proxy.running(running_proxy.settings(f"{url}/graphql", f"{url}/token")) as client:
            response = await client.get("/readyz")
    (shown,) = page.blocks("json", "")
    assert (response.status, await response.json()) == (503, json.loads(shown.text))


async def test_wrong_upstream_address_has_the_documented_message(page: Any) -> None:
    (block,) = page.blocks("console", "")
    async with scripted_upstream.running() as upstream:
        upstream.respond_with(scripted_upstream.ScriptedResponse(b"<html>Not Found</html>", 404, "text/html"))
        async with running_proxy.running(running_proxy.settings(upstream.graphql_url, upstream.token_url)) as client:
            response = await client.get("/readyz")
    command, shown = block.text.splitlines()
    assert command == "$ curl -s http://127.0.0.1:8088/readyz"
    assert (response.status, await response.text()) == (503, shown)


async def test_documented_request_fields_are_those_of_the_log(page: Any) -> None:
    documented = {name for row in page.table("field of `request completed`") for name in re.findall(r"`(\w+)`", row[0])}
    async with scripted_upstream.running() as upstream:
        upstream.respond_with({"data": {"supMultiMatch": [{"hits": 0, "parts": []}]}})
        with log_lines.collected() as written:
            settings = running_proxy.settings(upstream.graphql_url, upstream.token_url)
            async with running_proxy.running(settings) as client:
                await client.match('[{"mpn":"X"}]')
                await client.get("/v3/parts/match")
    lines = [line for line in map(json.loads, written.getvalue().splitlines()) if line["event"] == "request completed"]
    assert set().union(*lines) - {"event", "level", "timestamp", "request"} == documented


async def test_every_documented_path_responds(page: Any) -> None:
    paths = [row[0].strip("`") for row in page.table("path")]
    settings = running_proxy.settings("http://127.0.0.1:9/graphql", "http://127.0.0.1:9/token")
    async with running_proxy.running(settings) as client:
        statuses = [(await client.get(path)).status for path in paths]
    assert statuses == [200, 503, 200]


def test_every_configuration_fragment_loads(pages: Any, tmp_path: Path) -> None:
    fragments = [yaml.safe_load(block.text) for name in PAGES for block in pages[name].blocks("yaml", "fragment")]
    known = [fragment for fragment in fragments if set(fragment) <= set(config.Config.__struct_fields__)]
    assert known
    for fragment in known:
        file = tmp_path / "config.yaml"
        file.write_text(yaml.safe_dump({**fragment, "applications": {"demo": {"apikeys": ["a-key"]}}}))
        assert loader.load(file, ENVIRONMENT).applications
