"""Fixtures: processes that end with their test or with their module, and a sandbox for all tests of a module."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from acceptance import running


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[running.Processes]:
    """Processes of a test."""
    with running.Processes(tmp_path) as started:
        yield started


@pytest.fixture(scope="module")
def module_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Processes]:
    """Processes for all tests of a module."""
    with running.Processes(tmp_path_factory.mktemp("processes")) as started:
        yield started


@pytest.fixture(scope="module")
def sandbox(module_processes: running.Processes) -> running.Sandbox:
    """A sandbox with its defaults, for all tests of a module."""
    return module_processes.sandbox()


@pytest.fixture
def clock(processes: running.Processes, needs_program: Callable[[str], str]) -> running.Clock:
    """A clock that a test can turn, for the processes that it starts with it."""
    needs_program("faketime")
    return processes.clock()
