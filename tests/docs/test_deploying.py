"""docs/how-to/deploy.md: nginx serves v3 requests with its configuration, and systemd accepts its unit."""

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from support import certificates, running_proxy, scripted_upstream

HOST = "127.0.0.1"
SECONDS = 60.0
NO_PARTS = {"data": {"supSearchMpn": {"hits": 0, "results": []}}}
# What the page's block needs around it: folders that the test may write, and one process.
AROUND = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{}}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{block}
}}
"""


class Front(NamedTuple):
    """nginx in front of the service: a v3 client of it, and its folder with the logs."""

    client: running_proxy.ProxyClient
    folder: Path


Starts = Callable[..., AbstractAsyncContextManager[Front]]


@pytest.fixture
def start_nginx(
    needs_program: Callable[[str], str], pages: Any, tmp_path: Path, unused_tcp_port_factory: Callable[[], int]
) -> Starts:
    """Starts nginx with the page's configuration in front of two machines."""
    program = shutil.which("nginx", path="/usr/sbin") or needs_program("nginx")
    (block,) = pages["docs/how-to/deploy.md"].blocks("nginx")

    @asynccontextmanager
    async def started(first: str, second: str) -> AsyncIterator[Front]:
        authority = certificates.CertificateAuthority(tmp_path)
        certificate, key = authority.issue("nginx")
        port = unused_tcp_port_factory()
        replacements = {
            "10.0.0.11:8080": first.removeprefix("http://"),
            "10.0.0.12:8080": second.removeprefix("http://"),
            "listen 443 ssl": f"listen {HOST}:{port} ssl",
            "/var/log/nginx/error.log": f"{tmp_path}/server.log",
            "/etc/nginx/parts.pem": str(certificate),
            "/etc/nginx/parts.key": str(key),
        }
        text = block.text
        for shown, used in replacements.items():
            assert shown in text
            text = text.replace(shown, used)
        file = tmp_path / "nginx.conf"
        file.write_text(AROUND.format(folder=tmp_path, block=text))
        process = await asyncio.create_subprocess_exec(
            program, "-p", str(tmp_path), "-e", str(tmp_path / "start.log"), "-c", str(file)
        )
        try:
            await _wait_for_port(process, port, tmp_path)
            trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(authority.ca_file)))
            async with aiohttp.ClientSession(connector=trust) as session:
                yield Front(running_proxy.ProxyClient(f"https://{HOST}:{port}", session), tmp_path)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    return started


async def _wait_for_port(process: asyncio.subprocess.Process, port: int, folder: Path) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            assert process.returncode is None, (folder / "start.log").read_text()
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(HOST, port)
                writer.close()
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def _machine(**changes: Any) -> AsyncIterator[tuple[str, scripted_upstream.ScriptedUpstream]]:
    """The URL of a running service, and its upstream."""
    async with scripted_upstream.running() as upstream:
        upstream.respond_with(NO_PARTS)
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, **changes)
        async with running_proxy.running(settings) as service:
            yield service.url, upstream


async def test_nginx_passes_long_v3_requests_on_and_nothing_else(start_nginx: Starts) -> None:
    padding = "&reference=" + "x" * 60_000
    async with _machine() as (url, _), start_nginx(url, url) as front:
        assert len((await front.client.match('[{"mpn":"PART"}]', padding))["results"]) == 1
        statuses = {path: (await front.client.get(path)).status for path in ("/metrics", "/healthz", "/readyz", "/")}
        missing_key = await front.client.get("/api/v3/parts/match")
    assert statuses == dict.fromkeys(statuses, 404)
    assert missing_key.status == 400
    assert missing_key.content_type == "application/json"  # of the service, not of nginx
    assert missing_key.headers["X-Request-Id"]


async def test_a_machine_that_is_down_costs_no_request(start_nginx: Starts, unused_tcp_port: int) -> None:
    async with _machine() as (url, upstream), start_nginx(f"http://{HOST}:{unused_tcp_port}", url) as front:
        for number in range(4):
            await front.client.match(f'[{{"mpn":"PART-{number}"}}]')
    assert len(upstream.requests) == 4


async def test_nginx_logs_no_api_key(start_nginx: Starts, unused_tcp_port: int) -> None:
    down = f"http://{HOST}:{unused_tcp_port}"
    async with start_nginx(down, down) as front:
        response = await front.client.get("/v3/parts/match?apikey=a-secret-key&queries=[]")
        too_long = await front.client.get("/v3/parts/match?apikey=a-secret-key&queries=" + "x" * 200_000)
        logs = "".join(file.read_text() for file in front.folder.glob("*.log"))
    assert (response.status, too_long.status) == (502, 414)
    assert "a-secret-key" not in logs


def test_systemd_accepts_the_unit(needs_program: Callable[[str], str], pages: Any, tmp_path: Path) -> None:
    (block,) = pages["docs/how-to/deploy.md"].blocks("ini")
    program = "/srv/v3bridge/.venv/bin/v3bridge"
    assert program in block.text
    unit = tmp_path / "v3bridge.service"
    unit.write_text(block.text.replace(program, "/bin/sh"))
    command = [needs_program("systemd-analyze"), "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
