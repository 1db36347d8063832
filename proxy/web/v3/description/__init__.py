"""v3's surface described, for people (docs/reference/v3-surface.md) and machines (OpenAPI), not part of serving."""
