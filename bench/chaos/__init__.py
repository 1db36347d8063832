"""Everything that docs/limits.md promises, held against real processes: `python -m bench.chaos`."""
