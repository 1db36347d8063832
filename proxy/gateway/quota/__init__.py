"""Quota of applications and API keys: reserved before a request, settled after it, held against limits."""
