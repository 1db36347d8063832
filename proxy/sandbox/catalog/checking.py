"""Checks the lines of a parts file and completes them: after this every id is there and resolves.

Used by the loader. A user's own file may name makers and categories by name and leave out ids; what cannot be
used is an error that names the file, the line and the fault.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from proxy.sandbox.catalog import generated, lines, matching, vocabulary

R = TypeVar("R")
_UID = re.compile(r"[0-9a-f]{16}")
_ID = re.compile(r"[1-9][0-9]{0,8}")
# Ids for lines that name none: above real ids, below those of generated parts.
_FIRST_OWN_ID = 900_000_001


class Check:
    """Remembers what the lines so far have used; `taken` holds their (maker id, mpn)."""

    def __init__(self, words: vocabulary.Vocabulary) -> None:
        self.taken: set[tuple[str, str]] = set()
        self._words = words
        self._ids: set[str] = set()
        self._uids: set[str] = set()
        self._sellers = {seller.company.id for seller in words.sellers}
        self._next_id = _FIRST_OWN_ID

    def file(self, path: Path) -> Iterator[lines.PartLine]:
        """The completed lines of a parts file. Raises lines.CatalogError naming file, line and fault."""
        for number, line in lines.read(path, lines.PartLine):
            try:
                yield self._complete(line)
            except ValueError as error:
                raise lines.CatalogError(f"{path}:{number}: {error}") from error

    def _complete(self, line: lines.PartLine) -> lines.PartLine:
        _named("mpn", line.mpn)
        maker = _known("manufacturer", line.manufacturer, self._words.maker)
        category = _known("category", line.category, self._words.category) if line.category else self._words.root()
        whole = msgspec.structs.replace(
            line,
            manufacturer=maker.id,
            category=category.id,
            id=line.id or self._free_id(),
            v3uid=line.v3uid or generated.v3uid(maker.id, line.mpn),
        )
        self._specs(whole)
        self._sellers_known(whole)
        self._unique(whole)
        return whole

    def _free_id(self) -> str:
        while str(self._next_id) in self._ids:
            self._next_id += 1
        return str(self._next_id)

    def _specs(self, line: lines.PartLine) -> None:
        for name, value in line.specs.items():
            attribute = self._words.attributes.get(name)
            if attribute is None:
                raise ValueError(f"specs: there is no attribute {name!r}")
            if not generated.fits(attribute, value):
                raise ValueError(f"specs: {name} takes a {attribute.value_type}, not {value!r}")

    def _sellers_known(self, line: lines.PartLine) -> None:
        for key, ids in (("sku", line.sku), ("codes", line.codes)):
            for id_ in ids:
                if id_ not in self._sellers:
                    raise ValueError(f"{key}: there is no seller with id {id_!r}")

    def _unique(self, line: lines.PartLine) -> None:
        if not _ID.fullmatch(line.id):
            raise ValueError(f"id {line.id!r} is not a number of at most nine digits")
        if line.id in self._ids:
            raise ValueError(f"id {line.id} is already taken by another part")
        for uid in (line.v3uid, *line.redirected):
            if not _UID.fullmatch(uid):
                raise ValueError(f"v3uid {uid!r} is not 16 lower case hex digits")
            if uid in self._uids:
                raise ValueError(f"v3uid {uid} is already taken by another part")
            self._uids.add(uid)
        self._ids.add(line.id)
        self.taken.add((line.manufacturer, line.mpn))


def _known(key: str, text: str, find: Callable[[str], R]) -> R:
    _named(key, text)
    try:
        return find(text)
    except LookupError as error:
        raise ValueError(f"{key}: there is none with id {text}") from error


def _named(key: str, text: str) -> None:
    if not matching.normalise(text):
        raise ValueError(f"{key} {text!r} has no letter or digit")
