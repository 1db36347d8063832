"""Admin interface: pages and JSON for operators, on a listener of their own."""
