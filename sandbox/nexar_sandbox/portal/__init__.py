"""Portal of the sandbox: pages for managing an organisation's applications and users (contract graphql.md §8)."""
