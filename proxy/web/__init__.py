"""HTTP layer, the only package with aiohttp.web code: v3's endpoints in v3/, and the operators' endpoints."""
