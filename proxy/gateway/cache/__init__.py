"""Response cache and request coalescing, per query."""
