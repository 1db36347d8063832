"""The query service's IDE: what `GET /graphql` shows in a browser, and what its page asks for beside queries."""
