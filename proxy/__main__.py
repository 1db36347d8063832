"""The command `v3bridge`, also as `python -m proxy`."""

import signal
import sys


def main() -> None:
    """Run the command line. `serve` ignores SIGHUP from here on until it can reload: imports alone take a second."""
    if sys.argv[1:2] == ["serve"]:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from proxy.cli import main as command_line

    command_line.main()


if __name__ == "__main__":
    main()
