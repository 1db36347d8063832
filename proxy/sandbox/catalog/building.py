"""Fills a catalog's database: the lines of the parts as they come, at the end the columns and what is looked up.

Used by the loader. It holds the figures of all parts in memory while it works; describing them is `describing`'s
business and may happen in other processes.
"""

import sqlite3
from array import array
from collections.abc import Sequence

import msgspec
import numpy as np

from proxy.sandbox.catalog import columns, database, describing, filters, lines, matching, parts, vocabulary


class Builder:
    """Fills one database. `add` parts, then `finish` once."""

    def __init__(self, connection: sqlite3.Connection, words: vocabulary.Vocabulary) -> None:
        self._database, self._words = connection, words
        self._figures: list[describing.Figures] = []
        self._ids, self._cad = array("q"), array("B")
        self._makers: list[str] = []
        self._categories: list[str] = []
        self._names: list[tuple[str, str, int, bool]] = []
        self._specs: dict[str, tuple[array[int], list[float | str]]] = {}
        self._terms: dict[str, int] = {}
        self._said: list[columns.Array] = []
        self._places, self._lengths = array("H"), array("I")
        connection.execute("BEGIN")

    def add(self, batch: Sequence[lines.PartLine], described: describing.Described) -> None:
        """Checked lines with every id filled in, and what `describing` says of them."""
        encode = msgspec.json.Encoder().encode
        rows = [(int(one.id), one.v3uid, encode(one).decode()) for one in batch]
        self._database.executemany("INSERT INTO parts VALUES (?,?,?)", rows)
        self._database.executemany(
            "INSERT INTO uids VALUES (?,?)", [(uid, int(one.id)) for one in batch for uid in one.redirected]
        )
        codes = [(matching.normalise(code), int(one.id)) for one in batch for code in one.sku.values()]
        self._database.executemany("INSERT INTO skus VALUES (?,?)", codes)
        for number, one in enumerate(batch, len(self._ids)):
            self._names.append((matching.normalise(one.mpn), one.mpn, number, False))
            self._names += [(matching.normalise(aka), aka, number, True) for aka in one.aka]
            for name, value in one.specs.items():
                having, values = self._specs.setdefault(name, (array("I"), []))
                having.append(number)
                values.append(value)
        self._ids.extend([row[0] for row in rows])
        self._makers += [one.manufacturer for one in batch]
        self._categories += [one.category for one in batch]
        self._cad.extend(map(parts.cad_level, batch))
        self._hear(described)

    def finish(self) -> None:
        """Write what follows from all parts together."""
        ids = np.array(self._ids, np.int64)
        offered = np.array([one.offers for one in self._figures], np.int64)
        order = np.lexsort((ids, -offered))
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(len(order))
        self._write_parts(ids, order)
        self._write_sellers(order)
        self._write_names(row_of)
        self._write_specs(row_of)
        self._write_terms(row_of)
        self._database.execute("COMMIT")
        self._database.executescript(database.INDEXES)

    def _hear(self, described: describing.Described) -> None:
        self._figures += described.figures
        known = np.array([self._terms.setdefault(word, len(self._terms)) for word in described.words], np.uint32)
        self._said.append(known[np.array(described.said, np.uint32)])
        self._places.extend(described.places)
        self._lengths.extend(described.lengths)

    def _column(self, name: str, values: columns.Array, kind: str) -> None:
        columns.write(self._database, name, values, kind)

    def _write_parts(self, ids: columns.Array, order: columns.Array) -> None:
        found = self._figures
        self._column("ids", ids[order], "<i8")
        self._column("by_id", np.argsort(ids[order], kind="stable"), "<u4")
        self._column("cad", np.array(self._cad, np.uint8)[order], "u1")
        self._column("offers", np.array([one.offers for one in found], np.uint32)[order], "<u4")
        self._column("authorized", np.array([one.authorized for one in found], np.uint16)[order], "<u2")
        self._column("stocked", np.array([one.stocked for one in found], np.uint8)[order], "u1")
        self._column("median", _numbers([one.median for one in found])[order], "<f8")
        self._column("average", _numbers([one.average for one in found])[order], "<f8")
        self._column("tokens", np.array(self._lengths, np.uint32)[order], "<u4")
        self._coded("maker", "makers", self._makers, order)
        self._coded("category", "categories", self._categories, order)

    def _coded(self, column: str, labels: str, values: list[str], order: columns.Array) -> None:
        codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
        self._column(column, np.array([codes[value] for value in values], np.uint32)[order], "<u4")
        columns.write_labels(self._database, labels, list(codes))

    def _write_sellers(self, order: columns.Array) -> None:
        """A row of bits for each seller: which parts it lists."""
        lists = [self._figures[number].sellers for number in order.tolist()]
        numbers = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
        positions = np.frombuffer(b"".join(lists), np.uint8)
        packed = []
        for position in range(len(self._words.sellers)):
            listed = np.zeros(len(lists), bool)
            listed[numbers[positions == position]] = True
            packed.append(np.packbits(listed))
        self._column("sellers", np.concatenate([np.empty(0, np.uint8), *packed]), "u1")

    def _write_names(self, row_of: columns.Array) -> None:
        found = sorted(self._names, key=lambda name: name[0])
        self._database.executemany(
            "INSERT INTO names VALUES (?,?,?,?)",
            ((place, norm, mpn, aka) for place, (norm, mpn, _, aka) in enumerate(found)),
        )
        numbers = np.array([number for _, _, number, _ in found], np.int64)
        aka = np.array([aka for _, _, _, aka in found], np.uint8)
        self._column("name_rows", row_of[numbers], "<u4")
        self._column("name_aka", aka, "u1")
        written = sorted(range(len(found)), key=lambda place: found[place][1])
        self._column("name_order", _inverse(written), "<u4")
        text = [norm.encode() for norm, *_ in found]
        self._column("name_text", np.frombuffer(b"\0".join(text), np.uint8), "u1")
        self._column("name_starts", np.cumsum([0, *(len(norm) + 1 for norm in text[:-1])])[: len(text)], "<u4")
        own = np.flatnonzero(aka == 0)
        mpns = [filters.no_case(found[place][1]) for place in own.tolist()]
        places = np.empty(len(row_of), np.float64)
        places[row_of[numbers[own]]] = filters.ranks(mpns)
        self._column("mpn_places", places, "<u4")

    def _write_specs(self, row_of: columns.Array) -> None:
        for name, (having, values) in self._specs.items():
            labels = sorted(set(values))  # numbers or texts, never both
            codes = {value: code for code, value in enumerate(labels)}
            rows = row_of[np.array(having, np.int64)]
            order = np.argsort(rows)
            columns.write_labels(self._database, f"spec {name}", labels)
            self._column(f"spec {name} rows", rows[order], "<u4")
            self._column(f"spec {name} codes", np.array([codes[value] for value in values])[order], "<u4")

    def _write_terms(self, row_of: columns.Array) -> None:
        """Every token with where it stands, sorted by token, then by part, then by place."""
        terms = sorted(self._terms)
        position = np.empty(len(terms), np.int64)
        position[[self._terms[term] for term in terms]] = np.arange(len(terms))
        said = position[np.concatenate([np.empty(0, np.uint32), *self._said])]
        rows = np.repeat(row_of, np.array(self._lengths, np.int64))
        order = np.lexsort((rows, said))
        said, rows = said[order], rows[order]
        self._column("token_rows", rows, "<u4")
        self._column("token_places", np.array(self._places, np.uint16)[order], "<u2")
        stops = np.searchsorted(said, np.arange(len(terms)), side="right")
        firsts = np.concatenate(([0], stops[:-1]))
        new = np.flatnonzero(np.diff(said, prepend=-1) | np.diff(rows, prepend=-1))
        self._column("term_documents", np.bincount(said[new], minlength=len(terms)), "<u4")
        self._database.executemany(
            "INSERT INTO terms VALUES (?,?,?,?)",
            zip(range(len(terms)), terms, firsts.tolist(), stops.tolist(), strict=True),
        )


def _numbers(values: list[float | None]) -> columns.Array:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _inverse(order: list[int]) -> columns.Array:
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found
