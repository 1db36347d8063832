"""The HTTP edge, and the only aiohttp.web code of the service: v3's paths in v3/, health and metrics in ops.py."""
