"""The retired v3 API: its endpoints, parameters, bounds, parsing, actions, encoding and description."""
