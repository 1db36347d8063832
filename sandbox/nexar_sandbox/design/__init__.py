"""Design services of the sandbox: workspaces, projects, libraries and comments (contract graphql.md §5).

REST services, each on its own port, that only the query service may call; clients reach them through GraphQL only.
"""
