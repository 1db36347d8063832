"""Comparison run: plans and estimates requests, sends them to both sides within a budget, and saves progress."""
