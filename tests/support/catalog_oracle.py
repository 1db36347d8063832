"""Test oracle for the catalog's searches: the same searches in plain SQL, slow and simple.

Uses SQLite's own full-text search and ordering. Shares with `nexar_sandbox.catalog` the reading of lines, the indexed
text and the figures of offers, but no search code.
"""

import sqlite3
from collections import Counter

import msgspec

from nexar_sandbox.catalog import indexing, matching, parts, source_files, store

TABLES = """
CREATE TABLE parts (id INTEGER PRIMARY KEY, mpn TEXT, norm TEXT, maker TEXT, maker_name TEXT, category TEXT, line TEXT,
  cad INTEGER, offers INTEGER, authorized INTEGER, stocked INTEGER, median REAL, average REAL, sellers TEXT);
CREATE TABLE names (norm TEXT, mpn TEXT, part INTEGER, aka INTEGER);
CREATE VIRTUAL TABLE words USING fts5 (mpn, maker, category, description, specs, content='');
CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'row');
"""
KEYS = {
    "median_price_1000": "p.median",
    "avg_price": "p.average",
    "num_authsuppliers": "p.authorized",
    "mpn": "p.mpn COLLATE NOCASE",
    "manufacturer.displayname": "p.maker_name COLLATE NOCASE",
}
BEST = "p.offers DESC, p.id"


class CatalogOracle:
    """All parts of one open catalog, in an in-memory database."""

    def __init__(self, catalog: store.Catalog) -> None:
        self._reference, self._seed = catalog._reference, catalog._seed
        self.sql = sqlite3.connect(":memory:")
        self.sql.executescript(TABLES)
        self.sql.create_function("closeness", 2, matching.closeness, deterministic=True)
        for (text,) in catalog._connection.execute("SELECT line FROM parts ORDER BY id").fetchall():
            self._add(text)

    def by_text(self, q: str, where: str = "1", order: str = "") -> list[str]:
        """supSearch."""
        typed = [word for word in q.split() if matching.normalize(word)]
        if not typed:
            return self.everything(where, order)
        phrases = " AND ".join(_phrase(word, i == len(typed) - 1) for i, word in enumerate(typed))
        relevance = f"CASE WHEN p.norm = ? THEN -1e9 ELSE bm25(words, 10.0, 4.0, 3.0, 2.0, 1.0) END, {BEST}"
        params = () if order else (matching.normalize(q),)
        return self._ids(
            f"SELECT p.id FROM words JOIN parts p ON p.id = words.rowid WHERE words MATCH ? AND {where}"
            f" ORDER BY {order or relevance}",
            phrases,
            *params,
        )

    def by_mpn(self, q: str, where: str = "1", order: str = "") -> list[tuple[str, str | None]]:
        """supSearchMpn: ids with the alternate number that was hit."""
        rows = self.sql.execute(
            "SELECT p.id, CASE WHEN n.aka THEN n.mpn END, closeness(?1, n.mpn) AS rank"
            " FROM names n JOIN parts p ON p.id = n.part"
            f" WHERE instr(n.norm, ?2) > 0 AND {where} ORDER BY {order or f'rank, n.aka, {BEST}'}, rank, n.aka",
            (q, matching.normalize(q)),
        )
        best: dict[str, str | None] = {}
        for id_, aka, _ in rows:
            best.setdefault(str(id_), aka)
        return list(best.items())

    def everything(self, where: str = "1", order: str = "") -> list[str]:
        """All parts that match a condition."""
        return self._ids(f"SELECT p.id FROM parts p WHERE {where} ORDER BY {order or BEST}")

    def order(self, sort: str, descending: bool) -> str:
        """The ORDER BY clause of a sort key."""
        key = KEYS.get(sort) or f"json_extract(p.line, '$.specs.\"{sort}\"')"
        return f"{key} {'DESC' if descending else 'ASC'} NULLS LAST, {BEST}"

    def counts(self, ids: list[str], column: str) -> list[tuple[str, int]]:
        """Frequencies of a column's values, most frequent first, then by id."""
        among = msgspec.json.encode([int(id_) for id_ in ids]).decode()
        rows = self.sql.execute(
            f"SELECT {column} FROM parts p WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", (among,)
        )
        return Counter(value for (value,) in rows if value is not None).most_common()

    def seller_counts(self, ids: list[str]) -> list[tuple[str, int]]:
        """Number of parts by seller."""
        among = msgspec.json.encode([int(id_) for id_ in ids]).decode()
        rows = self.sql.execute(
            "SELECT sellers FROM parts p WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id", (among,)
        )
        return Counter(id_ for (text,) in rows for id_ in text.split()).most_common()

    def suggestions(self, start: str, limit: int) -> list[str]:
        """Part numbers with a prefix, most offered first."""
        rows = self.sql.execute(
            "SELECT n.mpn FROM names n JOIN parts p ON p.id = n.part WHERE substr(n.norm, 1, ?) = ?"
            " ORDER BY p.offers DESC, n.mpn LIMIT ?",
            (len(start), start, limit),
        )
        return [mpn for (mpn,) in rows]

    def terms(self) -> dict[str, int]:
        """Every token with its number of parts."""
        return dict(self.sql.execute("SELECT term, doc FROM terms").fetchall())

    def _ids(self, sql: str, *params: str) -> list[str]:
        return [str(id_) for (id_,) in self.sql.execute(sql, params)]

    def _add(self, text: str) -> None:
        line = msgspec.json.decode(text, type=source_files.PartLine)
        found = indexing.offer_figures(line, self._reference, self._seed)
        sellers = " ".join(self._reference.sellers[i].company.id for i in found.sellers)
        norm, maker = matching.normalize(line.mpn), self._reference.companies[line.manufacturer].name
        figures = (found.offers, found.authorized, found.stocked, found.median, found.average, sellers)
        row = (int(line.id), line.mpn, norm, line.manufacturer, maker, line.category, text, parts.cad_level(line))
        self.sql.execute(f"INSERT INTO parts VALUES ({','.join('?' * 14)})", (*row, *figures))
        names = [(norm, line.mpn, int(line.id), 0)]
        names += [(matching.normalize(aka), aka, int(line.id), 1) for aka in line.aka]
        self.sql.executemany("INSERT INTO names VALUES (?,?,?,?)", names)
        fields = (" ".join(texts) for texts in indexing.searchable_texts(line, self._reference))
        self.sql.execute(
            "INSERT INTO words (rowid, mpn, maker, category, description, specs) VALUES (?,?,?,?,?,?)",
            (int(line.id), *fields),
        )


def _phrase(word: str, open_end: bool) -> str:
    star = "*" if open_end or word.endswith("*") else ""
    spellings = dict.fromkeys((" ".join(matching.words(word)), matching.normalize(word)))
    return "(" + " OR ".join(f'"{spelling}"{star}' for spelling in spellings) + ")"
