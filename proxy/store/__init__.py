"""The shared state of workers, restarts and machines: protocol.py declares it, sqlite.py and redis.py implement it."""
