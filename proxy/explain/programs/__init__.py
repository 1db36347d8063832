"""Programs that send the GraphQL operations of a v3 request themselves, in Python, JavaScript or shell with jq."""
