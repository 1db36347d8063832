"""What workers, restarts and machines share. protocols.py says what a store can do; memory, SQLite and Redis do it."""
