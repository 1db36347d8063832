"""Base class of all blocks of settings, and the kinds of values that several of them have. Apart from them, so that
blocks can be in several modules."""

from typing import Annotated

import msgspec
from msgspec import Meta

from proxy.config.secret import File, ProxyAddress


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of all blocks of settings."""


def limits(unit: str, least: float, most: float, zero: str = "") -> Meta:
    """Return the limits of a number, and the words for them. `zero` says what 0 stands for."""
    meaning = f" ({zero})" if zero else ""
    return Meta(ge=least, le=most, description=f"{unit}, {least:.0f}{meaning} to {most:.0f}")


def above_zero(unit: str, most: float) -> Meta:
    """Return the limits of a number that may be any fraction."""
    return Meta(gt=0, le=most, description=f"{unit}, above 0 up to {most:.0f}")


Flag = Annotated[bool, Meta(description="true or false")]
Name = Annotated[
    Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]+\Z")] | None, Meta(description="letters, digits, - _ and .")
]
PemFile = Annotated[File | None, Meta(description="a PEM file, from this file's folder")]
Port = Annotated[int, Meta(ge=0, le=65535, description="a TCP port, 0 to 65535 (0 takes a free one)")]
OutgoingProxy = Annotated[
    ProxyAddress | None,
    Meta(description="an http:// address, with name:password@ where it requires them, env:NAME or file:PATH"),
]
BLOCK = Meta(description="a block of settings")
