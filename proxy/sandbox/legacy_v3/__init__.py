"""The old v3 service, answered straight from the catalog: the other side of a comparison, by an independent witness.

Written from the contract (v3-rest.md) and the catalog alone: it knows neither GraphQL nor the proxy's mappings.
"""
