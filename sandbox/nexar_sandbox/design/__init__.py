"""Design services of the sandbox: workspaces, projects, libraries and comments (contract graphql.md §5).

REST services, each on its own port, that only the query service may call; clients reach them through GraphQL only.
Records, tables and most resolvers are made from design.graphql: for a new type, add it there and to records.py.
"""
