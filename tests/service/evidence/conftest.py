"""Fixtures: a store of each kind."""

from service.stores.conftest import kind, manual_clock, open_store, store, store_address  # noqa: F401 - fixtures
