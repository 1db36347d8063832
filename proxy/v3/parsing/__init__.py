"""Parsing of v3 requests into frozen values: projections, queries of parts/match, searches. Pure.

Used by the web to serve requests, and by commands that explain them or estimate their cost.
"""
