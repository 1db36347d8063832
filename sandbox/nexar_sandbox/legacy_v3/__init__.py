"""Legacy v3 service: an independent implementation on the catalog, the baseline for comparisons.

Written from the contract (v3-rest.md) only; it uses neither GraphQL nor the proxy's mappings.
"""
