"""Records of a query as the caches exchange them, and the form in which the shared cache stores them."""

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import structlog

from proxy.kit import zstd
from proxy.planning.facets import SearchDetails

FORMAT = 4  # of entries; programs with different ones share none
LEVEL = -1  # of zstd: results of 15 KB shrink to 0.28 in 15 µs; level 1 takes 20 µs for 0.23
FIELDS_MAX = 500  # sets of fields whose encoded form is remembered
CHECKSUM = 4  # bytes of it in front of an entry

UNREADABLE = (ValueError, zstd.ZstdError, MemoryError)  # a damaged entry may state any size

# Of a search of v3, or of GraphQL: a list for each field beside the part.
_details = msgspec.json.Decoder(SearchDetails | dict[str, list[Any]]).decode

log = structlog.get_logger()


class CachedRecords(NamedTuple):
    """Records of a query in one selection, as the shared cache holds them: `stored` in seconds since 1970. `limit` is
    that of the first page of a match, 0 of anything else.
    """

    fields: frozenset[str]
    records: bytes
    hits: int
    details: Any
    stored: float
    limit: int = 0


class _Selection(msgspec.Struct, array_like=True, frozen=True):
    """One selection of an entry, as it is encoded. All bytes are compressed JSON; those of no details are empty."""

    fields: bytes
    hits: int
    stored: float
    details: bytes
    records: bytes
    limit: int


class EntryFormat:
    """Encodes and decodes entries: a checksum, without which most damaged ones would be read as other prices, and the
    selections. Encodes in one thread and decodes in another."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(LEVEL)
        self._decode = msgspec.msgpack.Decoder(list[_Selection]).decode
        self._compressed_fields: dict[frozenset[str], bytes] = {}  # most entries have the same
        self._fields: dict[bytes, frozenset[str]] = {}

    def encode(self, entries: Sequence[Sequence[CachedRecords]]) -> list[bytes | None]:
        """Encode entries; None for one that cannot be encoded."""
        contents: list[bytes | None] = []
        for entry in entries:
            try:
                content = msgspec.msgpack.encode(list(map(self._selection, entry)))
            except (TypeError, ValueError, OverflowError) as error:
                log.warning("shared cache entry ignored", exc_info=error)
                contents.append(None)
            else:
                contents.append(zlib.crc32(content).to_bytes(CHECKSUM, "big") + content)
        return contents

    def decode(self, content: bytes) -> list[CachedRecords]:
        """Decode an entry. Raises one of UNREADABLE."""
        if zlib.crc32(memoryview(content)[CHECKSUM:]) != int.from_bytes(content[:CHECKSUM], "big"):
            raise ValueError("the checksum is wrong")
        return [
            CachedRecords(
                self._decoded_fields(each.fields),
                zstd.decompress(each.records),
                each.hits,
                _details(zstd.decompress(each.details)) if each.details else None,
                each.stored,
                each.limit,
            )
            for each in self._decode(content[CHECKSUM:])
        ]

    def _selection(self, cached: CachedRecords) -> _Selection:
        fields = self._compressed_fields.get(cached.fields)
        if fields is None:
            if len(self._compressed_fields) >= FIELDS_MAX:
                self._compressed_fields.clear()
            fields = self._compressed(msgspec.json.encode(cached.fields))
            self._compressed_fields[cached.fields] = fields
        details = b"" if cached.details is None else self._compressed(msgspec.json.encode(cached.details))
        records = self._compressed(cached.records)
        return _Selection(fields, cached.hits, cached.stored, details, records, cached.limit)

    def _compressed(self, data: bytes) -> bytes:
        return self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)

    def _decoded_fields(self, compressed: bytes) -> frozenset[str]:
        fields = self._fields.get(compressed)
        if fields is None:
            if len(self._fields) >= FIELDS_MAX:
                self._fields.clear()
            fields = msgspec.json.decode(zstd.decompress(compressed), type=frozenset[str])
            self._fields[compressed] = fields
        return fields
