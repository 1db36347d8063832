"""Requests generated from the description of v3, what they exercised, and differences shrunk to few parameters."""
