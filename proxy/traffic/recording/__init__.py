"""Recordings: files with the responses of both sides and of the GraphQL API, and sides that replay them."""
