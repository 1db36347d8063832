"""v3bridge: migration proxy that serves the retired Octopart v3 REST API from the Nexar GraphQL API."""

__version__ = "0.2.0"
