"""Fixtures of filled workbooks: a sandbox with the parts of the tests' workbooks, and the command that pays with it.

Nothing in this folder reads or writes workbooks with the code under test: `support.workbooks` builds them from XML text
and reads them back; openpyxl and LibreOffice open them.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support.running_commands import Run

from proxy.cli import embedded

CONFIG = """
upstream: {{graphql_url: "{graphql_url}", token_url: "{token_url}"}}
store: sqlite:{folder}/state.sqlite
applications:
  shop:
    client_id: "{client_id}"
    client_secret: "{client_secret}"
    apikeys: ["k3y-of-sheets"]
    parts: 1000
"""


class EmbeddedService(NamedTuple):
    """A sandbox, the configuration for it, and its client credentials."""

    config: Path
    client_id: str
    client_secret: str


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    folder = tmp_path_factory.mktemp("service")
    command = [sys.executable, "-m", "proxy", "sandbox", "--port", "0", "--catalog", str(embedded.add_in_sample())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed: dict[str, str] = {}
        while "client_secret" not in printed:
            name, _, value = process.stdout.readline().partition(" ")
            printed[name] = value.strip()
        config = folder / "own.yaml"
        config.write_text(CONFIG.format(folder=folder, **printed))
        yield EmbeddedService(config, printed["client_id"], printed["client_secret"])
        process.terminate()


@pytest.fixture
def fill(service: EmbeddedService, tmp_path: Path) -> Run:
    """Runs the command. Without `office` it finds no LibreOffice."""

    def run(file: Path, *options: str, office: bool = False) -> "subprocess.CompletedProcess[str]":
        environ = {
            **os.environ,
            "NO_COLOR": "1",
            "SHEET_KEY": "k3y-of-sheets",
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        if not office:
            environ["PATH"] = str(tmp_path)
        command = [sys.executable, "-m", "proxy", "sheet", "fill", str(file), "--config", str(service.config), "--yes"]
        result = subprocess.run([*command, *options], env=environ, capture_output=True, text=True, timeout=100)
        assert "Traceback" not in result.stderr, result.stderr
        assert service.client_secret not in result.stdout + result.stderr
        return result

    return run
