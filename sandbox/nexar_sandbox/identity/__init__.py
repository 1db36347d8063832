"""Identity service of the sandbox: OAuth 2.0 and OpenID Connect (contract graphql.md §4)."""
