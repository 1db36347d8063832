"""Logging, metrics, tracing and request ids. None of them holds an API key or a secret."""
