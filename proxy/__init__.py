"""v3bridge: programs written for the retired v3 parts API go on working on the GraphQL service."""

__version__ = "0.1.0"
