"""From a v3 request to GraphQL operations and back: what to ask, split at the service's caps, and whose answer it is.

Pure: it never asks anything itself. The pipeline asks, and hands the answers back.
"""
