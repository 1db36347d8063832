"""Files of one run of `sheet fill`: decided before anything is paid for, and replaced only if they are as they were."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import typer

from proxy import errors
from proxy.cli import spending
from proxy.tools.sheet import fill, records
from proxy.tools.sheet.columns import csv_table
from proxy.tools.sheet.command.fill_options import FillOptions
from proxy.tools.sheet.package import saving


class FillFiles:
    """What a run reads and writes. `left` is a file that somebody changed during the run, so that the result stands
    beside it."""

    def __init__(self, options: FillOptions) -> None:
        self._options = options
        self.target = options.file if options.in_place else options.output or fill.copy_path(options.file)
        self.offers: Path | None = None
        self.backup: Path | None = None
        self.left: Path | None = None
        self._digests: dict[Path, str | None] = {}  # of what is to be replaced

    @contextmanager
    def held(self) -> Iterator[None]:
        """Check what is to be written, and keep other runs from the file."""
        options = self._options
        self._check_folder()
        if not options.in_place:
            self._check_target()
        with nullcontext() if options.dry_run else saving.held(options.file):
            self._digests[self.target] = saving.digest(self.target)
            if options.in_place:
                self._tell_open()
            yield

    def add_offers(self) -> None:
        """Write the offers to a file of their own, as a CSV file cannot hold them."""
        self.offers = csv_table.offers_file(self.target)
        records.FillRecords(self.offers).check_unchanged()
        self._digests[self.offers] = saving.digest(self.offers)

    def write(self, job: fill.FillJob) -> Mapping[str, int]:
        """Write the filled file; return the number of lines by outcome."""
        try:
            with saving.guarded(self._digests):
                if self._options.in_place:
                    self.backup = saving.back_up(self.target)
                return job.write(self.target)
        except saving.FileChanged as changed:
            self.left = changed.path
        self._step_aside()
        return job.write(self.target)

    def _step_aside(self) -> None:
        """Choose the first unused names."""
        is_used = True
        while is_used:
            self.target = fill.copy_path(self.target)
            self.offers = None if self.offers is None else csv_table.offers_file(self.target)
            is_used = self.target.exists() or (self.offers is not None and self.offers.exists())

    def _check_folder(self) -> None:
        folder = Path(os.path.realpath(self.target)).parent
        if not os.access(folder, os.W_OK):
            raise errors.SheetError(f"{self.target}: cannot be written: the folder {folder} is missing or not writable")

    def _check_target(self) -> None:
        """Refuse to overwrite what is not the output of an earlier run."""
        file = self._options.file
        if self.target.exists() and file.exists() and self.target.samefile(file):
            raise typer.BadParameter("is the file itself: use --in-place", param_hint="--output")
        if self.target.suffix.lower() != file.suffix.lower():
            raise typer.BadParameter(f"must end with {file.suffix}, as the file", param_hint="--output")
        records.FillRecords(self.target).check_unchanged()

    def _tell_open(self) -> None:
        """Say that the file is open in LibreOffice or Excel, which leave these files beside it meanwhile."""
        name = self.target.name
        if any(self.target.with_name(mark).exists() for mark in (f".~lock.{name}#", f"~${name}")):
            spending.say(
                f"note: {name} is open in another program: if it saves the file meanwhile, the result is a copy"
            )
