"""Tests of the stage machine: each lack of the machine is one diagnosis."""

import errno
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.doctor import machine
from proxy.kit import ports

from .conftest import Examine, diagnoses, the_finding

SANDBOX = "applications: {demo: {apikeys: [sha256:%s]}}\n" % ("0" * 64)

ALONE = SANDBOX + "admin: false\n"


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


async def test_a_machine_that_has_everything_passes(examine: Examine) -> None:
    findings = await examine(machine.check, ALONE + "listen: {port: 0}\n")
    assert diagnoses(findings) == []
    assert [finding.code for finding in findings] == ["secrets_protected", "port_free", "open_files", "memory", "disk"]


async def test_nothing_is_made(examine: Examine, tmp_path: Path) -> None:
    await examine(machine.check, ALONE + "listen: {port: 0}\n")
    assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]


async def test_a_secret_that_others_can_read_is_named(examine: Examine, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden")
    secret.chmod(0o644)
    text = (
        "listen: {port: 0}\napplications: {demo: {apikeys: [sha256:%s], client_id: a, client_secret: file:secret.txt}}"
    )
    findings = await examine(machine.check, text % ("0" * 64))
    assert diagnoses(findings) == ["secrets_exposed"]
    assert the_finding(findings, "secrets_exposed").advice == f"chmod 600 {secret}"
    assert "hidden" not in str(findings)


async def test_a_port_of_another_program_is_named(
    examine: Examine, taken_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "RUNNING_SECONDS", 0.05)  # that program never responds
    findings = await examine(machine.check, ALONE + f"listen: {{port: {taken_port}}}\n")
    assert diagnoses(findings) == ["port_in_use"]
    assert (
        the_finding(findings, "port_in_use").text == f"another program listens on 127.0.0.1:{taken_port} (listen.port)"
    )


async def test_a_port_of_the_admin_interface_that_another_program_has_is_named(
    examine: Examine, taken_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "RUNNING_SECONDS", 0.05)
    findings = await examine(machine.check, SANDBOX + f"listen: {{port: 0}}\nadmin: {{port: {taken_port}}}\n")
    assert diagnoses(findings) == ["port_in_use"]
    assert (
        the_finding(findings, "port_in_use").text == f"another program listens on 127.0.0.1:{taken_port} (admin.port)"
    )


async def test_an_unknown_host_is_named(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(host: str) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(ports, "addresses", unknown)
    findings = await examine(machine.check, ALONE + "listen: {host: no.example}\n")
    assert diagnoses(findings) == ["host_unusable"]
    assert "Name or service not known" in the_finding(findings, "host_unusable").text


async def test_a_port_that_needs_a_privilege_is_named(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(ports, "bind", forbidden)
    assert diagnoses(await examine(machine.check, ALONE + "listen: {port: 80}\n")) == ["port_not_allowed"]


@pytest.mark.parametrize("limit, expected", [(1384, []), (1383, ["open_files_short"]), (resource.RLIM_INFINITY, [])])
async def test_open_files_must_suffice_for_all_connections(
    examine: Examine, monkeypatch: pytest.MonkeyPatch, limit: int, expected: list[str]
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, limit))
    text = (
        'upstream: {graphql_url: "http://127.0.0.1:1/g", token_url: "http://127.0.0.1:1/t"}\nlisten: {port: 0}\n'
        "applications: {demo: {apikeys: [a], client_id: a, client_secret: b}}\n"
    )
    findings = await examine(machine.check, text)
    assert diagnoses(findings) == expected
    assert not expected or "a worker will serve 999 connections, not 1000" in str(findings)
