"""Fixtures of the tests of `v3bridge sheet`: the command in this process, and sandboxes without a proxy in front."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from support.running_commands import Run, run_in_this_process
from together.tools.sheet import sheet_source

import nexar_sandbox
from proxy.kit import clock


@pytest.fixture
def fill(tmp_path: Path) -> Run:
    """Runs `sheet fill` in the test's folder, with a state folder of its own; by default on the embedded sandbox."""

    def run(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        state = str(tmp_path / "state")
        return run_in_this_process("sheet", "fill", *arguments, folder=tmp_path, XDG_STATE_HOME=state, **variables)

    return run


@pytest.fixture
def serve(
    time: clock.ManualClock, catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> sheet_source.Serve:
    """`async with serve(…) as sandbox`, with fields of SandboxSettings."""

    def served(
        own: nexar_sandbox.Catalog | None = None, **settings: Any
    ) -> AbstractAsyncContextManager[nexar_sandbox.Sandbox]:
        chosen = nexar_sandbox.SandboxSettings(**settings)
        return nexar_sandbox.serve(chosen, clock=time, catalog=own or catalog, key=signing_key)

    return served


@pytest.fixture
async def sandbox(serve: sheet_source.Serve) -> AsyncIterator[nexar_sandbox.Sandbox]:
    async with serve() as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture(scope="session")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nexar_sandbox.Catalog]:
    """A catalog with a part for each of 1000 numbers."""
    path = tmp_path_factory.mktemp("catalog") / "numbered.jsonl"
    path.write_text("".join(f'{{"mpn": "SHEET{n:05}", "manufacturer": "370"}}\n' for n in range(sheet_source.NUMBERS)))
    opened_catalog = nexar_sandbox.open_catalog(extra=path)
    yield opened_catalog
    opened_catalog.close()
