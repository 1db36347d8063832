"""v3's endpoints: parse query strings to frozen requests, call the pipeline, render v3 responses (contract
v3-rest.md)."""
