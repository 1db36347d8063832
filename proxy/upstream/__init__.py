"""Clients of the Nexar GraphQL API and its identity service: one request, its retry, circuit breaker and tokens."""
