"""Catalog of the sandbox: shipped parts and a user's own, search and matching. No GraphQL and no HTTP."""
