"""Persistent state of the sandbox in one SQLite file, or in memory."""
