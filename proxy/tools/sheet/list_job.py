"""Fills the lines of a list: lines become queries, decisions, purchases, and the values of columns.

A column is recognized by its heading, so that a second run updates it. Results are packed until the file is written.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, DecimalException
from itertools import product
from typing import NamedTuple

import msgspec

from proxy import errors
from proxy.tools.sheet import columns, decisions, offers
from proxy.tools.sheet.cell_texts import Cell
from proxy.tools.sheet.columns import NEEDED, SOURCES, STATUS, CellValue, ColumnSpec, LinePart, Share
from proxy.tools.sheet.decisions import FOUND, LEFT_OUT, NO_VALUE, NOT_FETCHED, NOT_PRICED, OUTCOMES, PARTLY, Decision
from proxy.tools.sheet.lines import COLUMNS_MAX, NO_LINES, NOT_FITTED, Line, PartsList, text_of
from proxy.tools.sheet.offers import CANDIDATES, OfferRules, Part, PartQuery, PartResult

OFFER_HEADINGS = (
    *("Line", "Part number", "Manufacturer", "Distributor", "Authorized", "SKU", "Stock", "MOQ", "Order multiple"),
    *("Lead time days", "Packaging", "Currency", "Price breaks", "Offer URL", "Data as of"),
)
_PRICED = ("price", "total")
_SHARE_MIN = Decimal("0.0005")  # of a price, below which a change is that of its rounding
_ALWAYS_OF_OFFER = ("price", "total", "order_quantity", "distributor", "price_breaks")

_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(tuple[Part, ...]).decode


class Wanted(NamedTuple):
    """What is added to a list: columns, and which offers count."""

    specs: Sequence[ColumnSpec]
    rules: OfferRules


class Amount(msgspec.Struct, frozen=True):
    """Total of some lines; None for those without a price."""

    distributor: str
    lines: int
    total: Decimal | None


class ListJob:
    """One list. After `fill`, `outcomes` say how many lines have which, `reasons` why they lack what was asked for, and
    `changed` what differs from the columns that the list holds."""

    unit = "line"

    def __init__(self, found: PartsList, wanted: Wanted, boards: int = 1) -> None:
        self.found = found
        self._wanted = wanted
        self._boards = boards
        self._currencies, self._best_at = columns.currencies_and_quantity(wanted.specs)
        self._packed: dict[PartQuery, tuple[PartResult, bytes]] = {}
        self._decisions: dict[int, Decision] = {}
        self._amounts: dict[str | None, list[Decimal]] = defaultdict(list)
        self._shares: dict[int, Share] = {}
        self._summed = next((spec for spec in wanted.specs if spec.kind == "total"), None)
        self.currency = (self._summed and self._summed.currency) or columns.CURRENCY  # of the totals
        self.lines = len(found.lines)  # with a part number
        self.problems, self.left_out = found.problems, found.left_out
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.reasons: Counter[str] = Counter()
        self.changed: list[str] = []
        self.notes: list[str] = []
        headings = list(found.headings)
        self._places = {spec: headings.index(spec.heading) for spec in wanted.specs if spec.heading in headings}
        self._earlier = dict(self._places)
        free = max(found.width, len(headings))
        for spec in wanted.specs:
            if spec not in self._places:
                self._places[spec] = free
                free += 1
        if free > COLUMNS_MAX:
            raise errors.SheetError("no room for columns right of the data")
        self._sources: dict[int, PartQuery] = {}
        """By row, if the column of other manufacturers is wanted."""
        for line in found.lines if SOURCES in wanted.specs else ():
            first = line.choices[0]
            self._sources[line.row] = PartQuery(first.mpn, "", first.sku, self._currencies[0], CANDIDATES)

    def needed(self) -> list[PartQuery]:
        """Return the queries without which a line is not decided, or lacks a currency."""
        needed: dict[PartQuery, None] = {}
        for line in self.found.lines:
            if line.row in self._sources:
                needed[self._sources[line.row]] = None
            decision: Decision | PartQuery | None = self._decisions.get(line.row)
            if decision is None:
                decision = decisions.decide(line, self._result, self._wanted.rules, self._currencies[0])
            query = decision if isinstance(decision, PartQuery) else decision.query
            if query is not None:
                needed |= {query._replace(currency=currency): None for currency in self._currencies}
            if isinstance(decision, Decision):
                self._decisions[line.row] = decision._replace(part=None)
        return [query for query in needed if query not in self._packed]

    @property
    def worst_case(self) -> int:
        """Parts at most of what is not fetched yet."""
        undecided = {choice for line in self.found.lines if line.row not in self._decisions for choice in line.choices}
        chosen = [decision.query for decision in self._decisions.values() if decision.query is not None]
        known = {query._replace(currency=currency) for query, currency in product(chosen, self._currencies)}
        missing = sum(query.limit for query in known.union(self._sources.values()) - self._packed.keys())
        return decisions.PARTS_MAX * len(undecided) * len(self._currencies) + missing

    def add(self, result: PartResult) -> None:
        self._packed[result.query] = result._replace(parts=()), _pack(result.parts)

    def _result(self, query: PartQuery) -> PartResult | None:
        found = self._packed.get(query)
        return None if found is None else found[0]._replace(parts=_unpack(found[1]))

    def fill(self) -> columns.FilledColumns:
        """Return what is written into the list."""
        self.needed()  # decides what can be decided
        self._divide_purchases()
        new = {place: spec.heading for spec, place in self._places.items() if spec not in self._earlier}
        cells: dict[int, dict[int, CellValue]] = {self.found.header_row: {**new}}
        for line in self.found.lines:
            outcome, text, cells[line.row] = self._line(line)
            cells[line.row][self._places[STATUS]] = text
            self.outcomes[outcome] += 1
            if outcome != FOUND:
                self.reasons[text] += 1
        for each in self.left_out:
            if each.reason == NOT_FITTED:
                cells[each.row] = {self._places[STATUS]: NOT_FITTED}
            elif each.reason not in NO_LINES:
                text = f"{LEFT_OUT}: {each.reason}"
                cells[each.row] = {self._places[STATUS]: text}
                self.outcomes[LEFT_OUT] += 1
                self.reasons[text] += 1
        formats = {place: columns.KINDS[spec.kind].number_format for spec, place in self._places.items()}
        return columns.FilledColumns(cells, new, formats)

    def _divide_purchases(self) -> None:
        """Give each line its share of what is bought once for several."""
        groups: dict[tuple[object, ...], list[Line]] = defaultdict(list)
        for line in self.found.lines:
            decision = self._decisions.get(line.row)
            if decision is not None and decision.query is not None and line.quantity:
                groups[*decision.name, *sorted(map(offers.bare, line.skus))].append(line)
        for (mpn, *_), several in groups.items():
            wanted = sum(line.quantity or 0 for line in several)
            before = 0
            for line in several:
                own = line.quantity or 0
                self._shares[line.row] = Share(before, own, wanted)
                before += own
            if len(several) > 1:
                rows = ", ".join(str(line.row) for line in several[:5]) + (" …" if len(several) > 5 else "")
                self.notes.append(f"{mpn} on rows {rows} is bought once, {wanted:,} in all")

    def _part(self, row: int, currency: str) -> tuple[Part, float] | None:
        decision = self._decisions.get(row)
        if decision is None or decision.query is None:
            return None
        result = self._result(decision.query._replace(currency=currency))
        if result is None or not result.parts:
            return None
        own = (part for part in result.parts if (part.mpn, part.manufacturer) == decision.name)
        return next(((part, result.fetched) for part in own), None)

    def _line(self, line: Line) -> tuple[str, str, dict[int, CellValue]]:
        """Return the outcome of a line, its status, and the values of its other cells by column."""
        decision = self._decisions.get(line.row)
        if decision is None:
            return NOT_FETCHED, NOT_FETCHED, {}
        parts = {currency: self._part(line.row, currency) for currency in self._currencies}
        first = parts[self._currencies[0]]
        if first and line.skus and not any(offers.has_sku(offer, line.skus) for offer in first[0].offers):
            self.notes.append(f"row {line.row}: no offer has the number {', '.join(line.skus)}: the best one is taken")

        missing = self._not_fetched(line.row, decision)
        cells: dict[int, CellValue] = {}
        known: dict[tuple[object, ...], LinePart] = {}
        for spec, place in self._places.items():
            if spec == STATUS or spec in missing:  # then what an earlier run has written stays
                continue
            if spec == NEEDED:
                cells[place] = line.quantity
            elif spec == SOURCES:
                sources = self._result(self._sources[line.row])
                makers = dict.fromkeys(each.manufacturer for each in sources.parts) if sources else {}
                if first:
                    makers.pop(first[0].manufacturer, None)
                cells[place] = "; ".join(makers) or (columns.NONE if sources else None)
            else:
                part = self._line_part(line, spec, parts, known)
                cells[place] = None if part is None else columns.value(spec.kind, part)
                if spec == self._summed:
                    seller = part.best.offer.seller if part and part.best else None
                    total = cells[place]
                    self._amounts[seller].append(total if isinstance(total, Decimal) else Decimal(0))
        self.changed += changes(line, self.found.cells[line.row], self._earlier, cells)
        if not missing:
            return *self._status(line, decision, cells), cells
        outcome = decision.outcome if decision.query is None else PARTLY
        return outcome, f"{decision.text}, {NOT_FETCHED}: {_names(missing)}", cells

    def _not_fetched(self, row: int, decision: Decision) -> list[ColumnSpec]:
        """Return the columns of a decided line whose results are missing, or failed: the next run fetches them."""
        missing: list[ColumnSpec] = []
        for spec in self._places:
            query = self._sources[row] if spec == SOURCES else None
            if spec.takes("currency") and decision.query is not None:
                query = decision.query._replace(currency=spec.currency or columns.CURRENCY)
            if query is not None and (query not in self._packed or self._packed[query][0].error is not None):
                missing.append(spec)
        return missing

    def _line_part(
        self,
        line: Line,
        spec: ColumnSpec,
        parts: Mapping[str, tuple[Part, float] | None],
        known: dict[tuple[object, ...], LinePart],
    ) -> LinePart | None:
        """Return the part of a line as a column uses it: at which quantity, in which currency, of which distributor.
        `parts` are by currency; `known` gets those of other columns, because most are about the same best offer."""
        own = spec.currency or columns.CURRENCY
        currency = own if own in self._currencies else self._currencies[0]
        share: Share | None = Share(0, 1, 1)
        if spec.takes("quantity"):
            fixed = spec.quantity or (None if spec.takes("currency") else self._best_at)
            share = Share(0, fixed, fixed) if fixed else self._shares.get(line.row)
        found = parts[currency]
        if found is None or share is None:
            return None
        terms = share, currency, spec.distributor, spec.spec
        if terms not in known:
            of_seller = OfferRules(() if spec.distributor is None else (spec.distributor,))
            sold = offers.allowed(offers.allowed(found[0].offers, of_seller), self._wanted.rules, line.skus)
            known[terms] = LinePart(found[0], sold, share, currency, found[1], spec.spec)
        return known[terms]

    def _status(self, line: Line, decision: Decision, cells: Mapping[int, CellValue]) -> tuple[str, str]:
        empty = [spec for spec, place in self._places.items() if spec != STATUS and cells[place] in (None, "")]
        if decision.outcome != FOUND or not empty:
            return decision.outcome, f"{decision.text}; {line.problem}" if line.problem else decision.text
        if line.quantity is None and any(spec == NEEDED or spec.takes("quantity") for spec in empty):
            return NOT_PRICED, f"{decision.text}, not priced: {line.problem}"
        of_offer = [spec for spec in self._places if spec.kind in _ALWAYS_OF_OFFER and spec.distributor is None]
        if of_offer and all(spec in empty for spec in of_offer):
            packagings = ", ".join(self._wanted.rules.packagings)
            why = f"no offer counts{packagings and f' (--packaging {packagings})'}"
            return NOT_PRICED, f"{decision.text}, not priced: {why}"
        return NO_VALUE, f"{decision.text}, without {_names(empty)}"

    def totals(self) -> list[Amount]:
        """Return the total at each distributor, the greatest first, then that of all; none without such a column."""
        sold = {seller: totals for seller, totals in self._amounts.items() if seller is not None}
        result = [Amount(seller, len(own), columns.rounded(sum(own, Decimal(0)))) for seller, own in sold.items()]
        result.sort(key=lambda amount: (-(amount.total or 0), amount.distributor))
        every = [amount for totals in sold.values() for amount in totals]
        total = sum(every, Decimal(0))
        if self._summed is not None:
            result.append(Amount("All", len(every), columns.rounded(total)))
        if self._summed is not None and self._boards > 1:
            result.append(Amount("One board", len(every), columns.rounded(total / self._boards)))
        if without := self._amounts.get(None):
            result.append(Amount("Without price", len(without), None))
        return result

    def offer_rows(self) -> Iterator[Sequence[CellValue]]:
        """Yield the rows of the file of offers, of all lines."""
        yield OFFER_HEADINGS
        for line, currency in product(self.found.lines, self._currencies):
            if (found := self._part(line.row, currency)) is None:
                continue
            part, fetched = found
            for offer in part.offers:
                authorized = "yes" if offer.authorized else "no"
                stock = None if offer.stock is None else offers.stock_text(offer.stock)
                terms = offer.moq, offer.order_multiple, offer.lead_days, offer.packaging
                prices = columns.breaks_text(offers.price_breaks(offer, currency))
                start = line.row, part.mpn, part.manufacturer, offer.seller, authorized, offer.sku, stock
                yield *start, *terms, currency, prices, offer.url, columns.at(fetched)


def _names(specs: Iterable[ColumnSpec]) -> str:
    return ", ".join(spec.heading.removeprefix(f"{columns.PREFIX} ") for spec in specs)


def changes(
    line: Line, row: Sequence[Cell], places: Mapping[ColumnSpec, int], cells: Mapping[int, CellValue]
) -> list[str]:
    """Return what has changed on a line; `places` are the columns of the earlier run, `cells` the new values."""
    found: list[str] = []
    for spec, place in places.items():
        old, new = text_of(row[place]).strip() if place < len(row) else "", cells.get(place)
        if not old or place not in cells:  # not fetched
            continue
        before, after = _number(old), _number(new)
        text = f"{old} → {'none' if new in (None, '') else new}"
        if spec.kind in ("mpn", "manufacturer"):
            is_other = old != new
        elif spec.kind == "stock":
            is_other = (old == "Yes" or bool(before)) and not (new == "Yes" or bool(after))
            text = f"gone, was {old}"
        elif before is None or before == after or spec.kind not in (*_PRICED, "lead_time"):
            is_other = False
        elif spec.kind == "lead_time" or after is None or not before:
            is_other = True
        else:
            is_other = abs(after - before) > before * _SHARE_MIN
            text += f" ({(after - before) / before:+.0%})"
        if is_other:
            found.append(f"{spec.heading.partition(' ')[2]} {text}")
    choice = line.choices[0]
    return [f"row {line.row}, {choice.mpn or choice.sku}: {', '.join(found)}"] if found else []


def _number(value: CellValue | str) -> Decimal | None:
    """Return a number, also with a decimal comma, as an earlier run has written it; None for text."""
    try:
        return Decimal(str(value).replace(",", "."))
    except DecimalException:
        return None
