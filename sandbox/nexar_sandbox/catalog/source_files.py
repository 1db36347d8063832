"""The catalog's source files (JSON Lines), shipped ones and a user's: the type of a part's line, and reading them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from nexar_sandbox.catalog import records


class CatalogError(ValueError):
    """A catalog file that cannot be used; the message names the file, the line and the fault."""


class PartLine(
    msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True
):
    """A part. Numbers in `specs` are in SI base units (temperatures in °C); `sku` and `codes` are by seller id."""

    mpn: str
    manufacturer: str
    id: str = ""
    category: str = ""
    description: str = ""
    v3uid: str = ""
    specs: dict[str, float | str] = {}
    aka: list[str] = []
    redirected: list[str] = []
    series: str = ""
    datasheet: bool = True
    cad: bool | None = None
    images: bool = True
    factory_lead_days: int | None = None
    offers: Literal["", "none", "brokers", "nostock"] = ""
    sku: dict[str, str] = {}
    codes: dict[str, int] = {}
    documents: list[str] = []
    reference_designs: list[records.ReferenceDesign] = []
    free_sample: bool = False


L = TypeVar("L", bound=msgspec.Struct)


def read(path: Path, kind: type[L]) -> Iterator[tuple[int, L]]:
    """The lines of `path` with their numbers from 1, without blank ones. Raises CatalogError for an invalid line."""
    decoder = msgspec.json.Decoder(kind)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error
    for number, text in enumerate(raw.splitlines(), start=1):
        if not text.strip():
            continue
        try:
            yield number, decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CatalogError(f"{path}:{number}: {error}") from error
