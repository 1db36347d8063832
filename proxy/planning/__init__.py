"""Planning: v3 requests to GraphQL operations, split at the upstream's limits, and their results back. Pure."""
