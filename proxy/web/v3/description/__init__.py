"""v3's surface described, for people (docs/v3-surface.md) and machines (OpenAPI): never on the way of a request."""
