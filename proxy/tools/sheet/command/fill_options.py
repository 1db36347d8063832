"""Options of `sheet fill`, and which of them contradict each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from proxy import errors
from proxy.tools.sheet.columns.lines import TableReading
from proxy.tools.sheet.columns.quantities import Attrition, Build, DecimalMark, QuantityError, parse_attrition
from proxy.tools.sheet.parts import Refresh

WITH_FORMULAS = (".xlsx", ".xlsm")
ONLY_FORMULAS = ("as_add_in", "values", "refresh_login", "libreoffice")
ONLY_COLUMNS = (
    *("currency", "distributors", "authorized_only", "in_stock", "offers", "sheet"),
    *("mpn_column", "manufacturer_column", "sku_column", "quantity_column", "header_row", "decimal"),
    *("boards", "attrition"),
)


@dataclass(frozen=True, kw_only=True)
class FillOptions:
    """Options of `sheet fill`. The order of the fields is that of the help text."""

    file: Annotated[Path, typer.Argument(help="A parts list: .csv, .tsv, .xlsx or .xlsm.")]
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Columns to add, such as price@100,stock; see `v3bridge sheet columns`. Without columns, the formulas "
            "of a workbook that have functions of the Nexar or Octopart add-in are filled.",
        ),
    ] = None
    template: Annotated[
        str | None, typer.Option(metavar="FILE[:NAME]", help="Instead of --columns: a named set of columns and rules.")
    ] = None
    currency: Annotated[
        str | None, typer.Option(metavar="CODE", help="Currency of prices without one of their own; default USD.")
    ] = None
    distributors: Annotated[
        str | None, typer.Option(metavar="LIST", help="Only offers of these distributors: parts of names, or ids.")
    ] = None
    authorized_only: Annotated[
        bool, typer.Option("--authorized-only", help="Only offers of authorized distributors.")
    ] = False
    in_stock: Annotated[bool, typer.Option("--in-stock", help="Only offers whose stock covers the quantity.")] = False
    offers: Annotated[
        str | None,
        typer.Option(metavar="best:N|all|none", help="Offers of each line in the sheet of offers; default: all."),
    ] = None
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="Sheet of a workbook; default: the first with part numbers.")
    ] = None
    mpn_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of part numbers: its heading or letter.")
    ] = None
    manufacturer_column: Annotated[str | None, typer.Option(metavar="NAME", help="Column of manufacturers.")] = None
    sku_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of distributors' numbers, for lines without part number.")
    ] = None
    quantity_column: Annotated[str | None, typer.Option(metavar="NAME", help="Column of quantities.")] = None
    header_row: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Row of the headings; default: the one that fits best.")
    ] = None
    decimal: Annotated[
        DecimalMark | None,
        typer.Option(help="Decimal mark of quantities that can be read in two ways: 2.500 is 2500 or 2.5."),
    ] = None
    boards: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Buy for N boards: quantities of the list are those of one."),
    ] = None
    attrition: Annotated[
        str | None,
        typer.Option(metavar="3%|PIECES", help="What is lost in assembly, for lines that do not state it themselves."),
    ] = None
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The configuration; the embedded sandbox if omitted.")
    ] = None
    api_key: Annotated[
        str | None, typer.Option(metavar="env:NAME|file:PATH", help="API key of the configuration that is charged.")
    ] = None
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The filled copy; default: BOM.filled.xlsx beside BOM.xlsx.")
    ] = None
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Fill the file itself, after a backup, instead of a copy.")
    ] = False
    budget: Annotated[int | None, typer.Option(min=0, metavar="PARTS", help="Most parts that the run may cost.")] = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation before parts are spent.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost and end; nothing is fetched.")] = False
    rerun_failures: Annotated[
        bool, typer.Option("--rerun-failures", help="Fetch only what failed in the run that filled this file.")
    ] = False
    force_rerun_all: Annotated[
        bool, typer.Option("--force-rerun-all", help="Fetch everything again, whatever the cache has.")
    ] = False
    as_add_in: Annotated[
        bool, typer.Option("--as-add-in", help="Formulas: the add-in's own values, with its known faults and texts.")
    ] = False
    values: Annotated[
        bool, typer.Option("--values", help="Formulas: replace those with such functions by their values.")
    ] = False
    refresh_login: Annotated[
        bool, typer.Option("--refresh-login", help="Formulas: log in again; a login lasts 24 hours.")
    ] = False
    libreoffice: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Formulas: LibreOffice, if not on PATH; calculates what depends on them."),
    ] = None
    json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON; with --dry-run, the columns and the cost.")
    ] = False

    @property
    def fills_formulas(self) -> bool:
        """Whether formulas are filled, instead of columns."""
        return self.columns is None and self.template is None

    @property
    def refresh(self) -> Refresh:
        """What is fetched although the cache has it."""
        if self.force_rerun_all:
            return "everything"
        return "failures" if self.rerun_failures else "nothing"

    @property
    def reading(self) -> TableReading:
        """How the table is read."""
        given = (
            *(("mpn", self.mpn_column), ("brand", self.manufacturer_column), ("sku", self.sku_column)),
            ("quantity", self.quantity_column),
        )
        named = {key: name for key, name in given if name is not None}
        return TableReading(named, self.header_row, self.decimal, self._build)

    @property
    def _build(self) -> Build | None:
        """What the list is bought for."""
        if self.boards is None and self.attrition is None:
            return None
        try:
            attrition = Attrition() if self.attrition is None else parse_attrition(self.attrition)
        except QuantityError as error:
            raise typer.BadParameter(f"{self.attrition!r} {error}", param_hint="--attrition") from None
        return Build(self.boards or 1, attrition)


def check(options: FillOptions) -> None:
    """Refuse a folder, and options that contradict each other."""
    if options.file.is_dir():
        raise errors.SheetError(f"{options.file}: is a folder: name a parts list in it")
    if options.fills_formulas and options.file.suffix.lower() not in WITH_FORMULAS:
        raise typer.BadParameter("is missing: name columns, or a --template of them", param_hint="--columns")
    for name in ONLY_COLUMNS if options.fills_formulas else ONLY_FORMULAS:
        if getattr(options, name):
            other = (
                "is for columns: add --columns" if options.fills_formulas else "is for formulas: leave out --columns"
            )
            raise typer.BadParameter(other, param_hint=_option(name))
    for names in (("columns", "template"), ("output", "in_place"), ("rerun_failures", "force_rerun_all")):
        if all(getattr(options, name) for name in names):
            first, second = map(_option, names)
            raise typer.BadParameter(f"cannot be combined with {second}", param_hint=first)


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"
