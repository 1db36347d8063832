"""Sandbox: simulated upstream for running without Nexar credentials. Shares no code with the rest but kit."""
