"""State shared by workers, restarts and machines: protocols.py declares it; memory, SQLite and Redis implement it."""
