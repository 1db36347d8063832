"""Catalog of the sandbox: shipped and generated parts, search and matching. No GraphQL and no HTTP."""
