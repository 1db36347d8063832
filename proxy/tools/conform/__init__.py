"""Conformance: the assumptions about the Nexar services that change a value or a bill, and a command that tests them.

Independent of the code under test: it sends its own requests and reads raw responses.
"""
