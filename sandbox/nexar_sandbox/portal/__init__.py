"""Portal of the sandbox: pages for managing an organization's applications (contract graphql.md §8)."""
