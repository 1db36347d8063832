"""Judging of shadowed requests: the process of a worker that compares, and the report of all workers."""
