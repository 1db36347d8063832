"""GraphQL dialect: programs of today's API behind the same address, with the same parts as v3."""
