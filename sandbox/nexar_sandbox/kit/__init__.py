"""Clock, ports and rate limit windows: no domain."""
