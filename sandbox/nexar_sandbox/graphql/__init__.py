"""The query service of the sandbox: GraphQL over HTTP, answered from the catalog (contract graphql.md
§1-§3)."""
