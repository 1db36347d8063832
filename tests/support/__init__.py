"""Helpers shared by tests of several packages: scripted servers, clients, running products, test data."""
