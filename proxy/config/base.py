"""Base class of all blocks of settings. Apart from them, so that blocks can be in several modules."""

import msgspec


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of all blocks of settings."""
