"""Everything that docs/reference/limits.md promises, held against real processes: `python -m bench.chaos`."""
