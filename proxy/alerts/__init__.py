"""Alerts: conditions that an operator should know of, delivered to webhooks and commands."""
