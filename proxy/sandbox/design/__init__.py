"""The design side of the sandbox: workspaces, projects, libraries and comments (contract graphql.md §5).

REST services, each on a port of its own, that only the query service may ask; the world reaches them through GraphQL
and no other way.
"""
