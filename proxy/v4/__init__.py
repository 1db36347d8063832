"""The v4 dialect: GraphQL documents with the names of the retired v4 API, and its REST wrapper."""
