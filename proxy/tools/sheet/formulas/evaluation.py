"""Evaluation of all calls of a workbook, in the order of their dependencies.

A call whose arguments need the result of another waits for it: `plan` gives the queries that can be sent now, and is
called again when their results are there.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from proxy.tools.sheet.currencies import CURRENCIES
from proxy.tools.sheet.formulas import functions, requests
from proxy.tools.sheet.formulas.arguments import ArgumentContext, NeedsCalculation
from proxy.tools.sheet.formulas.calls import FunctionCall, TokenSpan
from proxy.tools.sheet.formulas.references import CellPosition
from proxy.tools.sheet.formulas.workbook import CallCell, KnownCells, OutdatedCell
from proxy.tools.sheet.package.cells import CellValue
from proxy.tools.sheet.parts import PartQuery, PartResult
from proxy.traffic import bom_columns


class CallKey(NamedTuple):
    """One call: its cell, its first token, and the cell of an array formula's range that the value is for."""

    cell: CellPosition
    start: int
    target: CellPosition


class PlannedCall(NamedTuple):
    """A call with its arguments."""

    key: CallKey
    request: requests.PartRequest


class UnknownArgument(NamedTuple):
    """An argument that has to be calculated."""

    key: CallKey
    span: TokenSpan


class CallEvaluation:
    """Values of calls as they become known."""

    def __init__(
        self,
        cells: Mapping[CellPosition, CallCell],
        known: KnownCells,
        value_of: Callable[[requests.PartRequest, PartResult | None], CellValue],
        *,
        as_add_in: bool,
    ) -> None:
        """`value_of` gives the value of a call, without a result that of a call without a part number."""
        self._cells = cells
        self._known = known
        self._value_of = value_of
        self._as_add_in = as_add_in
        self._planned: dict[PartQuery, list[PlannedCall]] = defaultdict(list)
        self.values: dict[CallKey, CellValue] = {}
        """Values of calls that have one."""
        self._results: dict[PartQuery, PartResult] = {}
        self.waiting = 0
        """Number of calls that wait for values of others, as of the last `plan`: results do not change it."""
        self._calculated: dict[CallKey, dict[int, CellValue]] = defaultdict(dict)
        self.pending = dict.fromkeys(cells)
        """Cells with calls that have no value yet, in the order of the workbook."""
        self.unknown: list[UnknownArgument] = []
        """Arguments that the last `plan` could not evaluate."""
        self._refused_distributors: set[str] = set()
        self.not_planned: dict[CellPosition, str] = {}
        """Cells with a call that names no distributor that exists, and one of the names."""

    def plan(self) -> list[PartQuery]:
        """Evaluate what can be evaluated; return the queries of the calls that have all arguments."""
        self._planned.clear()
        before = -1
        # Values without a query, such as those of erroneous arguments, may be arguments of calls before them.
        while before != len(self.values):
            before = len(self.values)
            self._planned.clear()
            self.unknown.clear()
            for position in list(self.pending):
                self._evaluate_cell(self._cells[position])
            # A query of an earlier stage is not sent again, whether or not there is a cache.
            for query in [query for query in self._planned if query in self._results]:
                self.add(self._results[query])
        self.waiting = self._count_waiting()
        return list(self._planned)

    def _count_waiting(self) -> int:
        keys = (
            CallKey(position, call.span.start, target)
            for position in self.pending
            for call in self._cells[position].parsed.calls
            for target in self._cells[position].targets
        )
        return sum(key not in self.values for key in keys) - sum(map(len, self._planned.values()))

    def add(self, result: PartResult) -> list[PlannedCall]:
        """Give the calls of a query their values; return them."""
        if self.waiting:  # otherwise no further query follows, and all results would be kept for nothing
            self._results[result.query] = result
        planned = self._planned.pop(result.query, [])
        for call in planned:
            self._set(call.key, self._value_of(call.request, result))
        return planned

    @property
    def distributors(self) -> set[str]:
        """Distributors that the planned calls name."""
        calls = (call for planned in self._planned.values() for call in planned)
        return {name for call in calls for name in call.request.distributors}

    def refuse_distributor(self, name: str) -> None:
        """Let calls that name no other distributor have no value, without a query, from the next `plan` on."""
        self._refused_distributors.add(name)

    def set_calculated(self, argument: UnknownArgument, value: CellValue) -> None:
        """Take the value of an argument that was calculated elsewhere."""
        self._calculated[argument.key][argument.span.start] = value

    def set_value(self, cell: CallCell, call: FunctionCall, value: CellValue) -> None:
        """Give a call its value in all cells that its formula fills."""
        for target in cell.targets:
            self._set(CallKey(cell.position, call.span.start, target), value)

    def call_values(self, cell: CallCell, target: CellPosition) -> dict[int, CellValue]:
        """Return the values of a cell's calls so far, by their first token."""
        values = {}
        for call in cell.parsed.calls:
            key = CallKey(cell.position, call.span.start, target)
            if key in self.values:
                values[call.span.start] = self.values[key]
        return values

    def arguments(self, cell: CallCell, call: FunctionCall) -> dict[functions.Parameter, str]:
        """Return the arguments of a call as text. Raises like `requests.text_arguments`."""
        key = CallKey(cell.position, call.span.start, cell.position)
        return requests.text_arguments(cell.parsed, call, self._context(cell, cell.position), self._calculated[key])

    def _context(self, cell: CallCell, target: CellPosition) -> ArgumentContext:
        return ArgumentContext(cell.position, self._known, self.call_values(cell, target), target, cell.is_array)

    def _evaluate_cell(self, cell: CallCell) -> None:
        for call in cell.parsed.calls:
            for target in cell.targets:
                key = CallKey(cell.position, call.span.start, target)
                if key not in self.values and call.function.looks_up:
                    self._evaluate_call(cell, call, key)

    def _evaluate_call(self, cell: CallCell, call: FunctionCall, key: CallKey) -> None:
        context = self._context(cell, key.target)
        inner = [other for other in cell.parsed.calls if call.span.start < other.span.start < call.span.end]
        if any(other.span.start not in context.calls for other in inner):
            return
        try:
            request = requests.part_request(cell.parsed, call, context, self._calculated.get(key, {}))
        except OutdatedCell:
            return
        except NeedsCalculation as needed:
            self.unknown.extend(UnknownArgument(key, span) for span in needed.spans)
        except requests.InvalidArgument as error:
            self._set(key, error.value)
        else:
            is_refused = request.distributors and self._refused_distributors.issuperset(request.distributors)
            if is_refused:
                self.not_planned[key.cell] = f"no distributor is called {request.distributors[0]!r}"
            is_placeholder = not self._as_add_in and bom_columns.is_placeholder(request.mpn)
            if is_placeholder:
                self.not_planned[key.cell] = f"{request.mpn!r} is not a part number"
            is_wanted = request.currency in CURRENCIES and not is_refused and not is_placeholder
            # The add-in converts nothing, and compares the text with the currencies of the offers.
            if request.mpn and (self._as_add_in or is_wanted):
                self._planned[request.query(as_add_in=self._as_add_in)].append(PlannedCall(key, request))
            else:
                self._set(key, self._value_of(request, None))

    def _set(self, key: CallKey, value: CellValue) -> None:
        self.values[key] = value
        cell = self._cells[key.cell]
        calls, targets = len(cell.parsed.calls), cell.targets
        if calls > 1 and len(self.call_values(cell, key.target)) < calls:
            return
        if cell.parsed.is_one_call:
            self._known.results[key.target] = self.values[key._replace(start=cell.parsed.calls[-1].span.start)]
        if calls == len(targets) == 1 or all(len(self.call_values(cell, target)) == calls for target in targets):
            self.pending.pop(key.cell, None)
