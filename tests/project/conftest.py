"""Fixtures: processes of the service and a sandbox, as tests of acceptance have them."""

from acceptance.conftest import module_processes, processes, sandbox

__all__ = ["module_processes", "processes", "sandbox"]
