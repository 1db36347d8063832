"""HTTP layer, the only package with aiohttp.web code: endpoints of v3, v4 and GraphQL, and the operators' endpoints."""
