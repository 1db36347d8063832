"""Fills the formulas of a workbook: the add-ins' functions, and what depends on them.

The workbook is read when the job is made. `queries` are those whose arguments are known; `proceed` continues with those
that need their results, and calculates. `write` changes nothing but values of cells.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from proxy import errors
from proxy.tools.sheet import fill, libreoffice
from proxy.tools.sheet.fill import AMBIGUOUS, FAILED, FOUND, NO_VALUE, NOT_FOUND, OUTCOMES, STALE
from proxy.tools.sheet.formulas import add_in_results, login, results
from proxy.tools.sheet.formulas.arguments import NeedsCalculation
from proxy.tools.sheet.formulas.calculation import WorkbookCalculation
from proxy.tools.sheet.formulas.calls import TokenSpan
from proxy.tools.sheet.formulas.evaluation import CallEvaluation, PlannedCall
from proxy.tools.sheet.formulas.references import CellPosition, WorkbookNames
from proxy.tools.sheet.formulas.requests import InvalidArgument, PartRequest
from proxy.tools.sheet.formulas.workbook import (
    CallCell,
    KnownCells,
    LoadedCells,
    OutdatedCell,
    WorkbookFormulas,
    argument_areas,
)
from proxy.tools.sheet.package.cells import CellChange, CellError, CellValue
from proxy.tools.sheet.package.workbook import Package
from proxy.tools.sheet.parts import STALE_SECONDS, PartQuery, PartResult

NOT_FILLED = "not filled"  # keeps its old value; `problems` says why


class FormulaOptions(NamedTuple):
    """How formulas are filled. `now`: Unix time, by which values are stale. `login_optional`: API keys and the like
    stand in for it."""

    as_add_in: bool = False
    values: bool = False
    rerun_failures: bool = False
    login_optional: bool = False
    now: float = 0.0


class FormulaJob:
    """The formulas of one workbook."""

    unit = "cell"
    kept_queries: Sequence[PartQuery] = ()

    def __init__(
        self,
        workbook: Package,
        options: FormulaOptions,
        office: libreoffice.LibreOffice | None = None,
        fetched_before: Callable[[PartQuery], float | None] = lambda _: None,
    ) -> None:
        """`fetched_before` returns when an earlier run fetched a query; None if it is unknown. Raises SheetError for a
        workbook without such functions, with a wrong login, or with a circular reference."""
        self._workbook = workbook
        self._options = options
        self._office = office
        self._fetched_before = fetched_before
        self._formulas = _read_formulas(workbook)
        if not self._formulas.calls:
            raise errors.SheetError(_without_calls(workbook, self._formulas))
        self._excluded = results.Excluded()
        self.login: login.WorkbookLogin | None = None
        self._dirty, self._rerun = self._selected()
        self._known = KnownCells(self._loaded(self._rerun), self._formulas.names, self._outdated())
        self._evaluation = CallEvaluation(self._rerun, self._known, self._value_of, as_add_in=options.as_add_in)
        self._calculation = WorkbookCalculation(workbook, self._formulas, self._evaluation, self._known)
        self._outcomes: dict[CellPosition, str] = {}
        self._reasons: dict[CellPosition, str] = {}
        self._calculation_failure = ""
        self._log_in()
        self.queries: Sequence[PartQuery] = self._evaluation.plan()
        """Those that can be sent now."""
        self.distributors = self._evaluation.distributors
        self.notes: list[str] = []

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why cells lack values, and how many of them."""
        return Counter(filter(None, self._reasons.values()))

    def refuse_distributor(self, name: str, reason: str) -> None:
        """Spend nothing on calls that name no other distributor. The add-in spends it, and so does `as_add_in`."""
        note = f"{reason}: formulas that name no other have no value"
        self.notes.append(note if self._options.as_add_in else f"{note}, and cost nothing")
        if not self._options.as_add_in:
            self._evaluation.refuse_distributor(name)
            self.queries = self._evaluation.plan()

    @property
    def lines(self) -> int:
        """Number of cells with a function that looks up a part."""
        return sum(_looks_up(cell) for cell in self._formulas.calls.values())

    @property
    def later_queries(self) -> int:
        """Queries at most that need results of others, and can be sent only then."""
        return self._evaluation.waiting

    def add(self, result: PartResult) -> None:
        """Take one result."""
        for call in self._evaluation.add(result):
            value = self._evaluation.values[call.key]
            self._count(call.key.cell, *_outcome(result, call, value, self._options.now))

    def _count(self, cell: CellPosition, outcome: str, reason: str) -> None:
        """Note the outcome of a call; the last one of OUTCOMES is that of its cell."""
        if OUTCOMES.index(outcome) >= OUTCOMES.index(self._outcomes.get(cell, FOUND)):
            self._outcomes[cell], self._reasons[cell] = outcome, reason

    def end_login(self, *, refused: bool, used: bool, refreshed: bool) -> None:
        """Note when the login was used first or renewed, or write into its cell that it was refused."""
        if self.login is None or self.login.client_id is None:
            return
        if refused:
            self._known.results[self.login.cell] = login.REFUSED
        elif used or refreshed:  # a renewed one has lost its token: the next request gets another
            login.LoginRecords().note(self.login.client_id, self._options.now, refreshed=refreshed)

    async def proceed(self, *, stopped: bool) -> Sequence[PartQuery]:
        """Continue with the results so far: plan the queries that need them, and calculate where calls need it."""
        self.queries = self._evaluation.plan()
        while (stopped or not self.queries) and await self._calculate():
            self.queries = self._evaluation.plan()
        return [] if stopped else self.queries

    def write(self, target: Path) -> Mapping[str, int]:
        """Write a copy of the workbook with the new values; return the number of cells by outcome."""
        filled_by_calls = {target for cell in self._rerun.values() for target in cell.targets}
        changes: dict[str, dict[tuple[int, int], CellChange]] = defaultdict(dict)
        for position, value in self._known.results.items():
            plain = self._options.values and position in filled_by_calls
            changes[position.sheet][position.row, position.column] = CellChange(value, drop_formula=plain)
        self._workbook.save(target, changes)
        for cell, reason in self._evaluation.not_planned.items():
            self._count(cell, NO_VALUE, f"{NO_VALUE}: {reason}")
        counts = Counter(dict.fromkeys((*OUTCOMES, NOT_FILLED), 0))
        counts.update(self._outcomes.values())
        counts.update(self._kept_outcomes())
        counts[NOT_FILLED] = len(self.problems)
        return counts

    def _kept_outcomes(self) -> Iterator[str]:
        """Yield the outcomes of cells that keep the values of an earlier run."""
        kept = {position: cell for position, cell in self._formulas.calls.items() if position not in self._rerun}
        known = KnownCells(self._loaded(kept), self._formulas.names, ())
        evaluation = CallEvaluation(kept, known, self._value_of, as_add_in=self._options.as_add_in)
        times: dict[CellPosition, list[float | None]] = defaultdict(list)
        for query in evaluation.plan():
            for call in evaluation.add(PartResult(query, None, 0, None, 0.0)):
                times[call.key.cell].append(self._fetched_before(query))
        for position, ages in times.items():
            age = _age(None if None in ages else min(age for age in ages if age is not None), self._options.now)
            yield NO_VALUE if age == FOUND and _is_empty(kept[position].cached) else age

    @property
    def problems(self) -> list[str]:
        """Cells that keep their old values, and why, in the order of the workbook."""
        without_value = dict(self._formulas.unreadable)
        arguments = {argument.key.cell: argument for argument in self._evaluation.unknown}
        for position in self._dirty:
            if position in self._known.results:
                continue
            if position in arguments:
                number = _number(self._formulas.calls[position], arguments[position].span)
                reason = f"argument {number} cannot be evaluated{self._without_office}"
            elif position in self._evaluation.pending:
                reason = "not fetched, or it needs a cell that has no new value"
            else:
                reason = f"not calculated{self._without_office}"
            without_value.setdefault(position, reason)
        return [f"{cell}: {reason}" for cell, reason in sorted(without_value.items())]

    @property
    def _without_office(self) -> str:
        if self._office is None:
            return ": LibreOffice is not installed"
        return f": {self._calculation_failure or 'LibreOffice cannot calculate it'}"

    def _selected(self) -> tuple[set[CellPosition], dict[CellPosition, CallCell]]:
        """Return the formulas to be evaluated or calculated, and those of them that have calls."""
        selected = [
            position
            for position, cell in self._formulas.calls.items()
            if not self._options.rerun_failures or not _looks_up(cell) or _failed(cell.cached)
        ]
        dependencies = self._formulas.dependencies
        dirty = dependencies.dependents(selected)
        rerun = {position: cell for position, cell in self._formulas.calls.items() if position in dirty}
        if circle := dependencies.circle(rerun, dirty):
            places = " → ".join(str(cell) for cell in (*circle, circle[0]))
            raise errors.SheetError(f"{self._workbook.path}: circular reference: {places}")
        return dirty, rerun

    def _loaded(self, cells: Mapping[CellPosition, CallCell]) -> LoadedCells:
        loaded = LoadedCells(argument_areas(cells, self._formulas.names))
        for sheet in self._workbook.sheets:
            if sheet.name in loaded.areas:
                loaded.load(sheet.name, self._workbook.rows(sheet, formulas=False))
        return loaded

    def _outdated(self) -> set[CellPosition]:
        return {cell for formula in self._dirty for cell in self._formulas.links[formula].fills.cells()}

    def _log_in(self) -> None:
        """Find the login, and give the functions about the add-in itself their values."""
        cells = list(self._formulas.calls.values())
        found = login.login_call(self._workbook.path, cells, optional=self._options.login_optional)
        if found is not None:
            cell, call = found
            try:
                arguments = self._evaluation.arguments(cell, call)
            except (NeedsCalculation, OutdatedCell, InvalidArgument):
                raise errors.SheetError(
                    f"{self._workbook.path}: {cell.position}: the login's arguments must be texts, or cells with texts"
                ) from None
            self.login = login.workbook_login(cell.position, call, arguments)
            self._excluded = self.login.excluded
            self._calculation.hide(self.login.secret.reveal())
        for cell in self._rerun.values():
            for call in cell.parsed.calls:
                if not call.function.looks_up:
                    self._evaluation.set_value(cell, call, login.session_text(cell.position, call, self.login))

    def _value_of(self, request: PartRequest, result: PartResult | None) -> CellValue:
        part, error = (None, None) if result is None else (result.part, result.error)
        if self._options.as_add_in:
            return add_in_results.add_in_value(request, part, error, self._excluded)
        return results.right_value(request, part, self._excluded)

    async def _calculate(self) -> bool:
        """Calculate what can be calculated; return whether that gave values."""
        if self._office is None or self._calculation_failure:
            return False
        plan = self._calculation.plan(self._dirty)
        if not plan.formulas and not plan.arguments:
            return False
        try:
            await self._calculation.run(self._office, plan)
        except libreoffice.CalculationFailed as error:
            self._calculation_failure = str(error)
            return False
        return True


def _read_formulas(workbook: Package) -> WorkbookFormulas:
    definitions = {(name.sheet, name.name): name.definition for name in workbook.defined_names()}
    sheets = [sheet.name for sheet in workbook.sheets]
    formulas = WorkbookFormulas(WorkbookNames(sheets, definitions, workbook.named_tables()))
    for sheet in workbook.sheets:
        for _, row in workbook.rows(sheet):
            for cell in row:
                if cell.formula is not None:
                    formulas.add(sheet.name, cell)
    return formulas


def _without_calls(workbook: Package, formulas: WorkbookFormulas) -> str:
    message = f"{workbook.path}: no formula has a function of the add-ins (NEXAR_SUPPLY_… or OCTOPART_…); "
    if formulas.unreadable:
        cell, reason = next(iter(formulas.unreadable.items()))
        message = f"{workbook.path}: {cell}: {reason}; "
    return message + "to add columns to a parts list, use --columns"


def _number(cell: CallCell, argument: TokenSpan) -> int:
    """Return which argument of its call a span is, from 1."""
    return next(call.arguments.index(argument) + 1 for call in cell.parsed.calls if argument in call.arguments)


def _looks_up(cell: CallCell) -> bool:
    return any(call.function.looks_up for call in cell.parsed.calls)


def _outcome(result: PartResult, call: PlannedCall, value: CellValue, now: float) -> tuple[str, str]:
    """Return the outcome of a call, and the reason where it has no value, or none that is certain."""
    if result.error is not None:
        return FAILED, f"{FAILED}: {result.error}"
    if result.part is None:
        return NOT_FOUND, fill.NO_PART
    if result.hits > 1 and not call.request.manufacturer:
        return AMBIGUOUS, f"{AMBIGUOUS}: several parts match: state the manufacturer"
    if _age(result.fetched, now) == STALE:
        return STALE, fill.OLD
    return (NO_VALUE, f"{NO_VALUE}: {call.request.function.name}") if _is_empty(value) else (FOUND, "")


def _age(fetched: float | None, now: float) -> str:
    """Return whether values are fresh; those of unknown age may be too old, too."""
    return FOUND if fetched is not None and now - fetched <= STALE_SECONDS else STALE


def _is_empty(value: CellValue) -> bool:
    return value == "" or _failed(value)


def _failed(value: CellValue) -> bool:
    """Return true for a cached value that `--rerun-failures` replaces. Not for an empty text: it is the right value
    where the service states none, and would be paid for again by each run."""
    return (
        value is None or isinstance(value, CellError) or (isinstance(value, str) and add_in_results.is_failure(value))
    )
