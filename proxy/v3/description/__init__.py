"""Generator of docs/v3-today.md; not used in serving."""
