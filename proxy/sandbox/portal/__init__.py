"""The portal of the sandbox: pages on which the users of an organisation look after its applications and each other
(contract graphql.md §8).
"""
