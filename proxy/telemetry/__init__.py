"""Log, metrics, and requests that are yet to be recorded. None of them holds an API key or a secret."""
