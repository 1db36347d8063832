"""deploy/: nginx and Caddy pass v3 requests on with their configurations, and systemd accepts its unit."""

import asyncio
import configparser
import contextlib
import json
import re
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

from proxy.config import loader
from proxy.workers import inherited

from .conftest import ROOT

DEPLOY = ROOT / "deploy"
HOST = "127.0.0.1"
SECONDS = 60.0
NO_PARTS = {"data": {"supMultiMatch": [{"hits": 0, "parts": []}]}}
# What nginx.conf needs around it: folders that the test may write, and one process.
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
    """A program for TLS in front of the service: a v3 client of it, and its folder with the logs."""

    client: running_proxy.ProxyClient
    folder: Path


Starts = Callable[..., AbstractAsyncContextManager[Front]]


def _changed(file: str, replacements: dict[str, str]) -> str:
    text = (DEPLOY / file).read_text()
    for shown, used in replacements.items():
        assert shown in text
        text = text.replace(shown, used)
    return text


@pytest.fixture
def start_nginx(
    needs_program: Callable[[str], str], tmp_path: Path, unused_tcp_port_factory: Callable[[], int]
) -> Starts:
    """Starts nginx with its configuration in front of two machines."""
    program = shutil.which("nginx", path="/usr/sbin") or needs_program("nginx")

    def started(first: str, second: str) -> AbstractAsyncContextManager[Front]:
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
        file = tmp_path / "nginx.conf"
        file.write_text(AROUND.format(folder=tmp_path, block=_changed("nginx.conf", replacements)))
        command = [program, "-p", str(tmp_path), "-e", str(tmp_path / "start.log"), "-c", str(file)]
        return _running(command, port, tmp_path, authority.ca_file)

    return started


@pytest.fixture
def start_caddy(
    needs_program: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    unused_tcp_port_factory: Callable[[], int],
) -> Starts:
    """Starts Caddy with its configuration in front of a machine, with a certificate of the test."""
    program = needs_program("caddy")

    def started(machine: str, _: str) -> AbstractAsyncContextManager[Front]:
        authority = certificates.CertificateAuthority(tmp_path)
        certificate, key = authority.issue("caddy")
        port = unused_tcp_port_factory()
        # Neither port 80 nor that of the administration is opened.
        options = "admin off\n\tauto_https disable_redirects\n\tlog {"
        replacements = {
            "v3bridge:8080": machine.removeprefix("http://"),
            "\tlog {": f"\t{options}",
            "{$SITE} {": f"{{$SITE}} {{\n\ttls {certificate} {key}",
        }
        file = tmp_path / "Caddyfile"
        file.write_text(_changed("Caddyfile", replacements))
        monkeypatch.setenv("SITE", f"https://{HOST}:{port}")
        monkeypatch.setenv("HOME", str(tmp_path))
        command = [program, "run", "--config", str(file), "--adapter", "caddyfile"]
        return _running(command, port, tmp_path, authority.ca_file)

    return started


@asynccontextmanager
async def _running(command: list[str], port: int, folder: Path, ca_file: Path) -> AsyncIterator[Front]:
    with (folder / "start.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        await _wait_for_port(process, port, folder)
        trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(ca_file)))
        async with aiohttp.ClientSession(connector=trust) as session:
            yield Front(running_proxy.ProxyClient(f"https://{HOST}:{port}", session), folder)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@pytest.fixture(params=["nginx", "caddy"])
def start_front(request: pytest.FixtureRequest) -> Starts:
    """Starts one of both."""
    start: Starts = request.getfixturevalue(f"start_{request.param}")
    return start


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


async def test_a_front_passes_long_v3_requests_on_and_nothing_else(start_front: Starts) -> None:
    padding = "&reference=" + "x" * 60_000
    async with _machine() as (url, _), start_front(url, url) as front:
        assert len((await front.client.match('[{"mpn":"PART"}]', padding))["results"]) == 1
        statuses = {path: (await front.client.get(path)).status for path in ("/metrics", "/healthz", "/readyz", "/")}
        missing_key = await front.client.get("/api/v3/parts/match")
    assert statuses == dict.fromkeys(statuses, 404)
    assert missing_key.status == 400
    assert missing_key.content_type == "application/json"  # of the service, not of the front
    assert missing_key.headers["X-Request-Id"]


async def test_a_machine_that_is_down_costs_no_request(start_nginx: Starts, unused_tcp_port: int) -> None:
    async with _machine() as (url, upstream), start_nginx(f"http://{HOST}:{unused_tcp_port}", url) as front:
        for number in range(4):
            await front.client.match(f'[{{"mpn":"PART-{number}"}}]')
    assert len(upstream.requests) == 4


@pytest.mark.parametrize("name, times", [("nginx", 2), ("caddy", 1)])
async def test_caddy_sends_no_request_twice_whose_connection_breaks_and_nginx_does(
    request: pytest.FixtureRequest, name: str, times: int
) -> None:
    """A worker dies that had a request, on a connection that was used before: the request may have cost parts."""
    start: Starts = request.getfixturevalue(f"start_{name}")
    received = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                received.append(head.split(b" ", 2)[1])
                if received[-1].endswith(b"last"):
                    break
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(serve, HOST, 0) as machine:
        url = "http://{}:{}".format(*machine.sockets[0].getsockname())
        async with start(url, url) as front:
            first = await front.client.get("/v3/parts/match?first")
            last = await front.client.get("/v3/parts/match?last")
    assert (first.status, last.status) == (200, 502)
    assert received == [b"/v3/parts/match?first"] + [b"/v3/parts/match?last"] * times


async def test_a_front_logs_no_api_key(start_front: Starts, unused_tcp_port: int) -> None:
    down = f"http://{HOST}:{unused_tcp_port}"
    async with start_front(down, down) as front:
        response = await front.client.get("/v3/parts/match?apikey=a-secret-key&queries=[]")
        too_long = await front.client.get("/v3/parts/match?apikey=a-secret-key&queries=" + "x" * 200_000)
        logs = "".join(file.read_text() for file in front.folder.glob("*.log"))
    assert (response.status, too_long.status) in ((502, 414), (502, 502))  # nginx has a limit of its own
    assert "a-secret-key" not in logs


async def test_caddy_logs_errors_without_request_lines(start_caddy: Starts, unused_tcp_port: int) -> None:
    down = f"http://{HOST}:{unused_tcp_port}"
    async with start_caddy(down, down) as front:
        await front.client.get("/v3/parts/match?apikey=a-secret-key&queries=[]")
        lines = [json.loads(line) for line in (front.folder / "start.log").read_text().splitlines()]
    (request,) = [line["request"] for line in lines if "request" in line]
    assert request["method"] == "GET"
    assert not {"uri", "headers"} & request.keys()


@pytest.fixture
def unit(tmp_path: Path) -> str:
    """The path of the service's unit, with a program that exists, beside that of its socket."""
    program = "/srv/v3bridge/.venv/bin/v3bridge"
    file = tmp_path / "v3bridge.service"
    for other in ("v3bridge.socket", "v3bridge-backup.timer", "v3bridge-warm.timer"):
        shutil.copy(DEPLOY / other, tmp_path)
    for name in ("v3bridge.service", "v3bridge-backup.service", "v3bridge-warm.service"):
        (tmp_path / name).write_text(_changed(name, {program: "/bin/sh"}))
    return str(file)


def _analyze(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)


def test_systemd_accepts_the_units(needs_program: Callable[[str], str], unit: str) -> None:
    ends = (".service", ".socket", "-backup.service", "-backup.timer", "-warm.service", "-warm.timer")
    units = [unit.replace(".service", end) for end in ends]
    done = _analyze(needs_program("systemd-analyze"), "verify", "--man=no", *units)
    assert (done.returncode, done.stderr) == (0, "")


def test_socket_unit_has_the_address_and_name_that_the_service_expects() -> None:
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign] # keys keep their case
    unit.read(DEPLOY / "v3bridge.socket")
    listen = loader.load(ROOT / "config.yaml", {}).listen
    assert unit["Socket"]["ListenStream"] == f"{listen.host}:{listen.port}"
    assert unit["Socket"]["FileDescriptorName"] == inherited.HTTP


def test_the_unit_is_as_hardened_as_documented(needs_program: Callable[[str], str], pages: Any, unit: str) -> None:
    (documented,) = re.findall(r"rates the\s+exposure ([\d.]+) of 10", pages["docs/how-to/deploy.md"].text)
    limit = round(float(documented) * 10)
    done = _analyze(needs_program("systemd-analyze"), "security", "--offline=true", f"--threshold={limit}", unit)
    assert done.returncode == 0, done.stdout


def test_the_page_names_every_file_of_deploy(pages: Any) -> None:
    text = pages["docs/how-to/deploy.md"].text
    names = {file.name for file in DEPLOY.iterdir()} - {"Dockerfile.dockerignore"}
    assert [name for name in names if f"](../../deploy/{name})" not in text] == []
