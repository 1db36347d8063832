"""The SQLite database that a catalog searches: creating, filling and opening it.

It holds the lines of the parts, lookup tables by name, and the columns that searches read; whole records are built
from the lines on demand.
"""

import sqlite3
from array import array
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from nexar_sandbox.catalog import columns, filters, indexing, matching, parts, reference_data, source_files

_TABLES = f"""
CREATE TABLE parts (id INTEGER PRIMARY KEY, uid TEXT, line TEXT);
CREATE TABLE uids (uid TEXT PRIMARY KEY, part INTEGER) WITHOUT ROWID;
CREATE TABLE skus (norm TEXT, part INTEGER);
CREATE TABLE names (position INTEGER PRIMARY KEY, norm TEXT, mpn TEXT, aka INTEGER);
CREATE TABLE terms (position INTEGER PRIMARY KEY, term TEXT, first INTEGER, stop INTEGER);
CREATE TABLE properties (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
{columns.TABLES}
"""
INDEXES = """
CREATE UNIQUE INDEX parts_uid ON parts (uid);
CREATE INDEX skus_norm ON skus (norm);
CREATE INDEX names_norm ON names (norm);
CREATE INDEX terms_term ON terms (term, first, stop);
"""
# Bytes; large, because columns are stored in large pieces.
_PAGE_SIZE = 16_384
# KiB of page cache, for creating the indexes.
_CACHE_SIZE = 256 * 1024
# Bytes of a file that are memory-mapped: more than any catalog has.
_MMAP_SIZE = 1 << 36


def create(path: Path | None = None) -> sqlite3.Connection:
    """A new, empty database, in memory or in a file. One thread at a time may use it, not only the one that opened
    it."""
    database = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
    # A half-filled database is thrown away, so neither a journal nor fsync is needed.
    database.executescript(
        f"PRAGMA page_size = {_PAGE_SIZE}; PRAGMA cache_size = -{_CACHE_SIZE};"
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
    )
    database.executescript(_TABLES)
    return database


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a finished catalog file read-only."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    database = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
    database.execute(f"PRAGMA mmap_size = {_MMAP_SIZE}")
    return database


class DatabaseBuilder:
    """Fills one database: `add` parts in batches, then `finish` once. Holds the figures of all parts in memory."""

    def __init__(self, connection: sqlite3.Connection, reference: reference_data.ReferenceData) -> None:
        self._connection, self._reference = connection, reference
        self._figures: list[indexing.OfferFigures] = []
        self._ids, self._cad = array("q"), array("B")
        self._makers: list[str] = []
        self._categories: list[str] = []
        self._names: list[tuple[str, str, int, bool]] = []
        self._specs: dict[str, tuple[array[int], list[float | str]]] = {}
        self._terms: dict[str, int] = {}
        self._token_numbers: list[columns.Array] = []
        self._positions, self._lengths = array("H"), array("I")
        connection.execute("BEGIN")

    def add(self, batch: Sequence[source_files.PartLine], indexed: indexing.IndexedParts) -> None:
        """Add validated lines, with every id filled in, and their index entries."""
        encode = msgspec.json.Encoder().encode
        rows = [(int(line.id), line.v3uid, encode(line).decode()) for line in batch]
        self._connection.executemany("INSERT INTO parts VALUES (?,?,?)", rows)
        self._connection.executemany(
            "INSERT INTO uids VALUES (?,?)", [(uid, int(line.id)) for line in batch for uid in line.redirected]
        )
        codes = [(matching.normalize(code), int(line.id)) for line in batch for code in line.sku.values()]
        self._connection.executemany("INSERT INTO skus VALUES (?,?)", codes)
        for number, line in enumerate(batch, len(self._ids)):
            self._names.append((matching.normalize(line.mpn), line.mpn, number, False))
            self._names += [(matching.normalize(aka), aka, number, True) for aka in line.aka]
            for name, value in line.specs.items():
                having, values = self._specs.setdefault(name, (array("I"), []))
                having.append(number)
                values.append(value)
        self._ids.extend([row[0] for row in rows])
        self._makers += [maker.manufacturer for maker in batch]
        self._categories += [category.category for category in batch]
        self._cad.extend(map(parts.cad_level, batch))
        self._add_index_entries(indexed)

    def finish(self) -> None:
        """Write the columns and lookup tables, which depend on all parts together."""
        ids = np.array(self._ids, np.int64)
        offered = np.array([figure.offers for figure in self._figures], np.int64)
        order = np.lexsort((ids, -offered))
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(len(order))
        self._write_parts(ids, order)
        self._write_sellers(order)
        self._write_names(row_of)
        self._write_specs(row_of)
        self._write_terms(row_of)
        self._connection.execute("COMMIT")
        self._connection.executescript(INDEXES)

    def _add_index_entries(self, indexed: indexing.IndexedParts) -> None:
        self._figures += indexed.offer_figures
        term_numbers = np.array(
            [self._terms.setdefault(token, len(self._terms)) for token in indexed.tokens], np.uint32
        )
        self._token_numbers.append(term_numbers[np.array(indexed.token_numbers, np.uint32)])
        self._positions.extend(indexed.positions)
        self._lengths.extend(indexed.lengths)

    def _column(self, name: str, values: columns.Array, kind: str) -> None:
        columns.write(self._connection, name, values, kind)

    def _write_parts(self, ids: columns.Array, order: columns.Array) -> None:
        figures = self._figures
        self._column("ids", ids[order], "<i8")
        self._column("by_id", np.argsort(ids[order], kind="stable"), "<u4")
        self._column("cad", np.array(self._cad, np.uint8)[order], "u1")
        self._column("offers", np.array([figure.offers for figure in figures], np.uint32)[order], "<u4")
        self._column("authorized", np.array([figure.authorized for figure in figures], np.uint16)[order], "<u2")
        self._column("stocked", np.array([figure.stocked for figure in figures], np.uint8)[order], "u1")
        self._column("median", _numbers([figure.median for figure in figures])[order], "<f8")
        self._column("average", _numbers([figure.average for figure in figures])[order], "<f8")
        self._column("tokens", np.array(self._lengths, np.uint32)[order], "<u4")
        self._coded("maker", "makers", self._makers, order)
        self._coded("category", "categories", self._categories, order)

    def _coded(self, column: str, labels: str, values: list[str], order: columns.Array) -> None:
        codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
        self._column(column, np.array([codes[value] for value in values], np.uint32)[order], "<u4")
        columns.write_labels(self._connection, labels, list(codes))

    def _write_sellers(self, order: columns.Array) -> None:
        """One bit per part and seller: whether the seller lists the part."""
        lists = [self._figures[number].sellers for number in order.tolist()]
        numbers = np.repeat(np.arange(len(lists)), [len(positions) for positions in lists])
        positions = np.frombuffer(b"".join(lists), np.uint8)
        packed = []
        for position in range(len(self._reference.sellers)):
            listed = np.zeros(len(lists), bool)
            listed[numbers[positions == position]] = True
            packed.append(np.packbits(listed))
        self._column("sellers", np.concatenate([np.empty(0, np.uint8), *packed]), "u1")

    def _write_names(self, row_of: columns.Array) -> None:
        names = sorted(self._names, key=lambda name: name[0])
        self._connection.executemany(
            "INSERT INTO names VALUES (?,?,?,?)",
            ((place, norm, mpn, aka) for place, (norm, mpn, _, aka) in enumerate(names)),
        )
        numbers = np.array([number for _, _, number, _ in names], np.int64)
        aka = np.array([aka for _, _, _, aka in names], np.uint8)
        self._column("name_rows", row_of[numbers], "<u4")
        self._column("name_aka", aka, "u1")
        written = sorted(range(len(names)), key=lambda place: names[place][1])
        self._column("name_order", _inverse(written), "<u4")
        text = [norm.encode() for norm, *_ in names]
        self._column("name_text", np.frombuffer(b"\0".join(text), np.uint8), "u1")
        self._column("name_starts", np.cumsum([0, *(len(norm) + 1 for norm in text[:-1])])[: len(text)], "<u4")
        own = np.flatnonzero(aka == 0)
        mpns = [filters.no_case(names[place][1]) for place in own.tolist()]
        places = np.empty(len(row_of), np.float64)
        places[row_of[numbers[own]]] = filters.ranks(mpns)
        self._column("mpn_places", places, "<u4")

    def _write_specs(self, row_of: columns.Array) -> None:
        for name, (having, values) in self._specs.items():
            labels = sorted(set(values))  # all numbers or all texts
            codes = {value: code for code, value in enumerate(labels)}
            rows = row_of[np.array(having, np.int64)]
            order = np.argsort(rows)
            columns.write_labels(self._connection, f"spec {name}", labels)
            self._column(f"spec {name} rows", rows[order], "<u4")
            self._column(f"spec {name} codes", np.array([codes[value] for value in values])[order], "<u4")

    def _write_terms(self, row_of: columns.Array) -> None:
        """Every token with its positions, sorted by token, then by part, then by position."""
        terms = sorted(self._terms)
        position = np.empty(len(terms), np.int64)
        position[[self._terms[term] for term in terms]] = np.arange(len(terms))
        term_positions = position[np.concatenate([np.empty(0, np.uint32), *self._token_numbers])]
        rows = np.repeat(row_of, np.array(self._lengths, np.int64))
        order = np.lexsort((rows, term_positions))
        term_positions, rows = term_positions[order], rows[order]
        self._column("token_rows", rows, "<u4")
        self._column("token_places", np.array(self._positions, np.uint16)[order], "<u2")
        stops = np.searchsorted(term_positions, np.arange(len(terms)), side="right")
        firsts = np.concatenate(([0], stops[:-1]))
        new = np.flatnonzero(np.diff(term_positions, prepend=-1) | np.diff(rows, prepend=-1))
        self._column("term_documents", np.bincount(term_positions[new], minlength=len(terms)), "<u4")
        self._connection.executemany(
            "INSERT INTO terms VALUES (?,?,?,?)",
            zip(range(len(terms)), terms, firsts.tolist(), stops.tolist(), strict=True),
        )


def _numbers(values: list[float | None]) -> columns.Array:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _inverse(order: list[int]) -> columns.Array:
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.arange(len(order))
    return inverse
