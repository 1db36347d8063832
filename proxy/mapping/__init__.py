"""Mapping of GraphQL types to v3 objects: declarations in mappings/, compiled at start. Pure."""
