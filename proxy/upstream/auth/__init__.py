"""Access tokens: cache, token requests, lifetimes, back-off after failures, and the encrypted store."""
