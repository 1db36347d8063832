"""Planning: v3 requests to GraphQL operations, split at the upstream's limits, and their results back to v3 queries.

Pure: nothing here sends a request. The pipeline executes the operations and passes the results back.
"""
