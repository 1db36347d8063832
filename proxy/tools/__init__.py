"""Tools for a migration, which use the service as a library: comparison, spreadsheets, conformance."""
