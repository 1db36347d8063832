"""Description of v3's endpoints, for people (docs/reference/v3-surface.md) and machines (OpenAPI); not used in
serving."""
