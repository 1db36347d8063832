"""v3's endpoints over HTTP (contract v3-rest.md): routes, responses, and caches of whole responses."""
