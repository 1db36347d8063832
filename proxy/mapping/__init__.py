"""Mapping of GraphQL types to v3 objects: declarations in mappings/, compiled at start (ARCHITECTURE.md, decision 1).

Pure: no network, no clock. Selections are used by planning, mapping functions by the pipeline, coverage by
documentation and CLI.
"""
