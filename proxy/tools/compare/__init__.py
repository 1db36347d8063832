"""Comparison of two services, baseline and candidate: differences, their causes and counts, and a verdict."""
