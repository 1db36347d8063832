"""The identity service of the sandbox: client credentials in, signed access tokens out (contract
graphql.md §4).
"""
