"""Chaos tests of the promises in SECURITY.md, with real processes: `python -m bench.chaos`."""
