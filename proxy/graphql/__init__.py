"""GraphQL dialect of the gateway: programs of today's API behind the same address, with the same records as v3.

A document is parsed, validated and compiled once (documents.py). Its root fields for parts become queries of the
pipeline (roots.py, queries.py), whose records a compiled function renders in the shape of the selection (selection.py).
What records do not hold is an operation of its own (own_operation.py).
"""
