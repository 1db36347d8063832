"""The upstream itself, for running with no account. A product of its own: it shares no code with the rest but kit."""
