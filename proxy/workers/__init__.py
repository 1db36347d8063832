"""Processes that answer: one alone, or a supervisor and its workers on one port. Only the command line starts them."""
