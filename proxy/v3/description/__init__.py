"""Generator of docs/reference/v3-surface.md; not used in serving."""
