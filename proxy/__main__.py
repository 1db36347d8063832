"""The command `v3bridge`, also as `python -m proxy`."""

import gc
import io
import os
import signal
import sys
from typing import Any


class _Output(io.FileIO):
    """Standard output or error. A pipe that nobody reads any more is no error: the exit code is that of the work."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)  # as if it had been read


def main() -> None:
    """Run the command line. `serve` ignores SIGHUP from here on until it can reload: imports alone take a second.

    Its options are read like those of any command; then the program begins anew as the service, without what has read
    them, which would take an eighth of its memory.
    """
    if sys.argv[1:2] == ["serve"]:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is not None:  # not closed
            output = io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False))
            buffered = bool(stream.line_buffering)
            setattr(sys, name, io.TextIOWrapper(output, stream.encoding, stream.errors, line_buffering=buffered))
    # The number of a closed stream would be given to a socket, which would then get what is printed.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    # Imports create 90 000 objects, and a large response more than the default: a collection would delay all others.
    gc.set_threshold(25_000, 40, 20)
    from proxy import cli

    if options := os.environ.pop(cli.SERVE, ""):
        import tempfile

        with tempfile.TemporaryDirectory(prefix="v3bridge-", ignore_cleanup_errors=True) as folder:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # before its library is imported anywhere
            from proxy.cli import service

            sys.exit(service.run(folder, options))
    from proxy.cli import main as command_line

    command_line.main()


if __name__ == "__main__":
    main()
