"""Load held under faults: `python -m bench soak`."""
