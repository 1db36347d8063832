"""Fixtures of the commands' tests."""

from support.running_commands import ROOT, environment, run_command, start_command

__all__ = ["ROOT", "environment", "run_command", "start_command"]
