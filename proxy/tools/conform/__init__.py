"""Conformance: what the proxy and the sandbox assume about the Nexar services, as data, and probes that test it.

Independent of the code under test: it sends its own requests and reads raw responses.
"""
