"""Fault injection between the services and their clients."""
