"""Fixtures of the commands' tests."""

import time

import pytest
from support.running_commands import run_command, start_command

__all__ = ["run_command", "start_command", "within_a_day"]


@pytest.fixture
def within_a_day() -> None:
    """Let no midnight (UTC) fall into a test that names days: one that begins in its last minute waits for the next."""
    left = 86_400 - time.time() % 86_400
    if left < 60:
        time.sleep(left)
