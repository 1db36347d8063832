"""Fixtures of the tests of `v3bridge sheet`: the command in this process, and sandboxes without a proxy in front."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.running_commands import Run, run_in_this_process

import nexar_sandbox


@pytest.fixture
def fill(tmp_path: Path) -> Run:
    """Runs `sheet fill` in the test's folder, with a state folder of its own; by default on the embedded sandbox."""
    state = str(tmp_path / "state")
    return partial(run_in_this_process, "sheet", "fill", folder=tmp_path, XDG_STATE_HOME=state)


@pytest.fixture(scope="session")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nexar_sandbox.Catalog]:
    """A catalog with a part for each of 1000 numbers."""
    path = tmp_path_factory.mktemp("catalog") / "numbered.jsonl"
    path.write_text("".join(f'{{"mpn": "SHEET{n:05}", "manufacturer": "370"}}\n' for n in range(1000)))
    opened_catalog = nexar_sandbox.open_catalog(extra=path)
    yield opened_catalog
    opened_catalog.close()
