"""The Nexar services simulated on one machine, for programs and tests that have no account."""

__version__ = "0.1.0"
