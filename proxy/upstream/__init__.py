"""Clients of the Nexar GraphQL API and its identity service: batching, retries, circuit breaker and access tokens."""
