"""The sandbox's parts: shipped data, generated data, search and matching. It knows no GraphQL and no HTTP."""
