"""From the service's types to v3's objects: declarations in mappings/, compiled at start (ARCHITECTURE.md, decision 1).

Pure: no network, no clock. planning uses the selections, the pipeline the mappers, docs and CLI the coverage.
"""
