"""Portal of the sandbox: pages for managing an organization's applications and users (contract graphql.md §8)."""
