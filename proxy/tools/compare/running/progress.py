"""Progress file of a run: the same command resumes where it stopped, and pays for nothing twice.

JSON lines: a header that identifies the run, then each comparison when it is made, and before a request that may cost
parts its maximum cost. A request without its comparison counts as spent: it may have been billed. Readable by its owner
alone, and without keys. A truncated last line is dropped, and its request is sent again.
"""

import contextlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, NoReturn

import msgspec

from proxy import errors
from proxy.tools.compare.judging.findings import Comparison
from proxy.traffic.recording import line_files

FORMAT = 2
_MARK = b'{"v3bridge-progress"'  # beginning of every header


class ProgressHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of a run. `settings` and `requests` are digests: of everything that affects judgement, and of the
    plan.
    """

    format: int = msgspec.field(default=FORMAT, name="v3bridge-progress")
    baseline: str
    candidate: str
    source: str
    settings: str
    requests: str


_WORDS = {
    "baseline": "the baseline was {}",
    "candidate": "the candidate was {}",
    "source": "the requests were of {}",
    "settings": "the rules were others",
    "requests": "other requests were chosen: the file of requests has changed, or --sample or --seed",
}


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Line of the file. `sending` and `parts`: id and maximum cost of a request to be sent. `done` and `comparison`:
    its result.
    """

    sending: str | None = None
    parts: int = 0
    done: str | None = None
    comparison: Comparison | None = None


_encode = msgspec.json.Encoder(decimal_format="number").encode
_decode = msgspec.json.Decoder(_Line, float_hook=Decimal).decode


class ProgressFile:
    """Progress of a run. `done` are the ids of compared requests; `spent` is the cost of the run so far, in parts.

    Failed requests are not done: they are sent again.
    """

    def __init__(self, path: Path, header: ProgressHeader, *, fresh: bool = False) -> None:
        """Create the file, or resume it unless `fresh`. Raises ConfigError, and leaves the file unchanged, if it
        belongs to another run or is no progress file.
        """
        self.path = path
        self.done: set[str] = set()
        self.spent = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = line_files.open_locked(path)
        except OSError as error:
            raise errors.ConfigError(f"the progress file {path} cannot be written: {error.strerror}") from error
        # Closes the file, and so releases its lock, if the constructor raises.
        with contextlib.ExitStack() as if_refused:
            if_refused.enter_context(self._file)
            if _begun(path) and not (fresh and self._may_overwrite()):
                self._resume(header)
            else:
                self._file.truncate(0)
                self._write(header)
            if_refused.pop_all()

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the saved comparisons. Must be read before new ones are written."""
        seen: set[str] = set()
        for line in self._lines():
            if line.done is None or line.comparison is None or line.done in seen:
                continue
            if line.comparison.failure is None:
                seen.add(line.done)
                yield line.comparison

    def sending(self, request_key: str, parts: int) -> None:
        """Write that a request, which may cost so many parts, is about to be sent."""
        self._write(_Line(sending=request_key, parts=parts))

    def note(self, request_key: str, comparison: Comparison) -> None:
        """Write the result of a request. It is in the file on return."""
        self._write(_Line(done=request_key, comparison=comparison))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def remove(self) -> None:
        """Delete the file: the run is complete."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _resume(self, header: ProgressHeader) -> None:
        self._check(header)
        reserved: dict[str, int] = {}
        for line in self._lines():
            if line.sending is not None:
                reserved[line.sending] = reserved.get(line.sending, 0) + line.parts
            if line.done is not None and line.comparison is not None:
                reserved.pop(line.done, None)
                self.spent += line.comparison.parts
                if line.comparison.failure is None:
                    self.done.add(line.done)
        # Requests without a result were in flight when the run ended: they may have been billed.
        self.spent += sum(reserved.values())
        # A truncated last line goes, so that the next one begins on a new line.
        self._file.truncate(sum(len(line) + 1 for line in line_files.WholeLines(self.path)))

    def _lines(self) -> Iterator[_Line]:
        lines = iter(line_files.WholeLines(self.path))
        next(lines, None)
        for text in lines:
            try:
                yield _decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self._refuse("has a line that cannot be read")

    def _check(self, header: ProgressHeader) -> None:
        first = next(iter(line_files.WholeLines(self.path)), b"")
        try:
            saved = msgspec.json.decode(first, type=ProgressHeader)
        except msgspec.MsgspecError:
            self._refuse("is not a progress file")
        if saved.format != FORMAT:
            self._refuse(f"is of format {saved.format}; this program writes {FORMAT}")
        for name, words in _WORDS.items():
            # Results of another command would be mixed with those of this one.
            if getattr(saved, name) != getattr(header, name):
                self._refuse(f"belongs to another run: {words.format(getattr(saved, name))}")

    def _may_overwrite(self) -> bool:
        """Return true if the file is a progress file and may be overwritten; raises ConfigError otherwise."""
        with self.path.open("rb") as file:
            if file.read(len(_MARK)) == _MARK:
                return True
        raise errors.ConfigError(f"{self.path} is not a progress file, and is left unchanged: name another")

    def _refuse(self, what: str) -> NoReturn:
        raise errors.ConfigError(
            f"{self.path} {what}. Name another file with --progress, or restart this run with --fresh"
        )

    def _write(self, line: ProgressHeader | _Line) -> None:
        self._file.write(_encode(line) + b"\n")
        # Without buffering: a killed run must not lose results that were paid for.
        self._file.flush()


def _begun(path: Path) -> bool:
    """Return true if a file holds more than a truncated header."""
    with path.open("rb") as file:
        start = file.read(4096)
    return b"\n" in start or not (_MARK.startswith(start) or start.startswith(_MARK))
