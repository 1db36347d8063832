"""Sheet of what a list costs: the total at each distributor whose offers are the best, and of all lines."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal

import msgspec

from proxy.tools.sheet.columns.kinds import rounded
from proxy.tools.sheet.offers import Purchase
from proxy.tools.sheet.package.cells import CellValue, ColumnLook

HEADINGS = ("Distributor", "Lines", "Total", "Currency")
LOOKS = (ColumnLook(28), ColumnLook(9, "#,##0"), ColumnLook(14, "#,##0.00"), ColumnLook(11))
ALL, ONE_BOARD, WITHOUT_PRICE = "All", "One board", "Without price"


class Amount(msgspec.Struct, frozen=True):
    """Total of some lines; None for those without a price."""

    distributor: str
    lines: int
    total: Decimal | None


class ListTotals:
    """Totals of a list in one currency, for a number of boards."""

    def __init__(self, currency: str, boards: int = 1) -> None:
        self.currency = currency
        self._boards = boards
        self._amounts: dict[str, list[Decimal]] = defaultdict(list)
        self._without = 0

    def add(self, purchase: Purchase | None) -> None:
        """Add what is bought for a line; None without a price."""
        if purchase is None:
            self._without += 1
        else:
            self._amounts[purchase.offer.seller].append(purchase.total)

    def amounts(self) -> list[Amount]:
        """Return the totals, the greatest first, then that of all."""
        each = [Amount(name, len(totals), rounded(sum(totals, Decimal(0)))) for name, totals in self._amounts.items()]
        lines = sum(amount.lines for amount in each)
        total = sum((amount.total or Decimal(0) for amount in each), Decimal(0))
        result = [*sorted(each, key=lambda amount: (-(amount.total or 0), amount.distributor))]
        result.append(Amount(ALL, lines, rounded(total)))
        if self._boards > 1:
            result.append(Amount(ONE_BOARD, lines, rounded(total / self._boards)))
        if self._without:
            result.append(Amount(WITHOUT_PRICE, self._without, None))
        return result

    def rows(self) -> Iterator[Sequence[CellValue]]:
        """Yield the rows of the sheet."""
        yield HEADINGS
        for each in self.amounts():
            yield each.distributor, Decimal(each.lines), each.total, None if each.total is None else self.currency
