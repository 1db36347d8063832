"""Columns of parts data for tables: what they hold, where they stand, and the files they are written to."""
