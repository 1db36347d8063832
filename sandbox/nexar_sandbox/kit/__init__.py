"""Clock, names of fields and rate limit windows: no domain."""
