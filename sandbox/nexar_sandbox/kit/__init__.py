"""Clock and rate limit windows: no domain."""
