"""What a sandbox keeps over its end, if it is given a file: rows of any kind, in one SQLite database."""
