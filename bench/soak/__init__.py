"""Soak test, a constant load under injected faults: `python -m bench.soak`."""
