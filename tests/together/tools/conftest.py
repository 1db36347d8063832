"""Fixtures of the tests of the tools."""

from support.running_commands import run_command, start_command

__all__ = ["run_command", "start_command"]
