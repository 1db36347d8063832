"""GraphQL dialect of the gateway: programs of today's API behind the same address, with the same parts as v3.

A document is parsed and validated once, and its operations are compiled once (preparation.py, selection.py). Root
fields for parts become queries of the pipeline (roots.py), whose results are shown in the shape of the selection. What
these do not cover is fetched as it stands (service.py).
"""
