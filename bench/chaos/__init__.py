"""Chaos tests of the promises in docs/reference/limits.md, with real processes: `python -m bench.chaos`."""
