"""The one package that uses private attributes and undocumented behavior of aiohttp, of its client.

`tests/service/kit/test_aiohttp_internals.py` names each of them and fails when an aiohttp lacks one; `pyproject.toml`
bounds the version.
"""
