"""GraphQL dialect: programs of today's API behind the same address, with the same parts as v3.

A document is parsed and validated once (documents.py) and its operation prepared once (preparation.py). Root fields for
parts become queries of the pipeline (roots.py), and their data is selected from parts and results (selection.py). What
these do not hold is sent as it stands.
"""
