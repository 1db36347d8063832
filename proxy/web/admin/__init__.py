"""Admin interface: pages and JSON for operators, on a listener of their own.

Every worker serves it: each has the figures of all, for /metrics, and actions reach the others through the store or the
supervisor.
"""
