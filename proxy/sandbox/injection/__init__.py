"""Faults at work: read, drawn, and put between the services and the sockets of their callers."""
