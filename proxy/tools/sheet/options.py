"""Options of `sheet fill`."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from proxy import errors
from proxy.tools.sheet import columns
from proxy.tools.sheet.lines import Reading
from proxy.tools.sheet.list_job import Wanted
from proxy.tools.sheet.offers import PACKAGINGS, OfferRules
from proxy.traffic.bom_columns import plain

WORKBOOKS = (".xlsx", ".xlsm")
_ROLES = {"mpn": "mpn", "manufacturer": "brand", "sku": "sku", "quantity": "quantity"}  # of --read
_ONLY_COLUMNS = ("only_distributors", "packaging", "any_offer", "boards", "read", "in_place")


@dataclass(frozen=True, kw_only=True)
class FillOptions:
    """Options of `sheet fill`. The order of the fields is that of the help text."""

    file: Annotated[Path, typer.Argument(help="A parts list: .csv, .tsv, .xlsx or .xlsm.")]
    columns: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Columns to add; without them, the add-in's formulas are filled."),
    ] = None
    only_distributors: Annotated[
        str | None, typer.Option(metavar="LIST", help="Only their offers: parts of names, or ids.")
    ] = None
    packaging: Annotated[str | None, typer.Option(metavar="LIST", help='Only offers in these: "cut tape, reel".')] = (
        None
    )
    any_offer: Annotated[
        bool, typer.Option("--any-offer", help="The best offer also where the list has a distributor's number.")
    ] = False
    boards: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Buy for N boards: quantities of the list are of one.")
    ] = None
    offers: Annotated[
        Literal["all", "none"], typer.Option(metavar="all|none", help="Offers in a file of their own.")
    ] = "all"
    read: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Headings as mpn=, manufacturer=, sku=, quantity=; or sheet=NAME."),
    ] = None
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Fill the file itself, after a backup, if nothing is lost.")
    ] = False
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The configuration; else the embedded sandbox.")
    ] = None
    api_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="API key that is charged: env:NAME or file:PATH.")
    ] = None
    budget: Annotated[
        int | None, typer.Option(min=0, metavar="PARTS", help="Most parts to spend; 0 prints the cost.")
    ] = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before parts are spent.")] = False
    force_rerun_all: Annotated[bool, typer.Option("--force-rerun-all", help="Fetch again, whatever is stored.")] = False
    refresh_login: Annotated[bool, typer.Option("--refresh-login", help="Formulas: log in again.")] = False
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False

    @property
    def is_workbook(self) -> bool:
        return self.file.suffix.lower() in WORKBOOKS

    def check(self) -> None:
        """Refuse options that contradict each other. Raises BadParameter."""
        if self.columns is None and not self.is_workbook and not self.file.is_dir():
            raise typer.BadParameter("is missing: name columns", param_hint="--columns")
        for name in _ONLY_COLUMNS if self.columns is None else ():
            if getattr(self, name):
                raise typer.BadParameter("is for columns: add --columns", param_hint=f"--{name.replace('_', '-')}")
        if self.columns is not None and self.refresh_login:
            raise typer.BadParameter("is for formulas: leave out --columns", param_hint="--refresh-login")

    def wanted(self) -> Wanted:
        """Return what is added to a list. Raises ConfigError."""
        if self.columns is None:
            return Wanted((), OfferRules())
        distributors, packagings = (
            tuple(each.strip() for each in (text or "").split(",") if any(map(str.isalnum, each)))
            for text in (self.only_distributors, self.packaging)
        )
        known = {plain(name): name for name in PACKAGINGS}
        for each in packagings:
            near = difflib.get_close_matches(plain(each), known, 1, 0.75)
            if near and not any(plain(each) in name for name in known):
                raise errors.ConfigError(f"no packaging is called {each!r} (did you mean {known[near[0]]}?)")
        return Wanted(columns.parse_list(self.columns), OfferRules(distributors, packagings, self.any_offer))

    def reading(self) -> tuple[Reading, str | None]:
        """Return how the list is read, and the sheet. Raises BadParameter."""
        named: dict[str, list[str]] = {}
        sheet: str | None = None
        for each in self.read or ():
            key, _, value = (word.strip() for word in each.partition("="))
            if key in _ROLES and value:
                named.setdefault(_ROLES[key], []).append(value)
            elif key == "sheet" and value:
                sheet = value
            else:
                known = ", ".join((*_ROLES, "sheet"))
                raise typer.BadParameter(f"{each!r} is not KEY=VALUE with a key of {known}", param_hint="--read")
        if sheet is not None and not self.is_workbook:
            raise typer.BadParameter("sheet= is for workbooks", param_hint="--read")
        return Reading(named, self.boards), sheet
