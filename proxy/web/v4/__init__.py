"""HTTP side of the v4 dialect."""
