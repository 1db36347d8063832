"""The query service's IDE: the page of `GET /graphql` in a browser, and its endpoints."""
