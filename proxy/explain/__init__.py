"""Explanations of v3 requests: how they are understood, planned, paid for and mapped. Sends nothing but a trace."""
