"""Parsing of v3 requests into frozen values: projections, queries of parts/match, searches. Pure."""
