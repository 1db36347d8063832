"""Processes of the service: a single one, or a supervisor and its workers on one port."""
