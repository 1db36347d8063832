"""The command `v3bridge`, also as `python -m proxy`."""

import sys

from proxy.kit import hangup


def main() -> None:
    """Run the command line. `serve` ignores SIGHUP from here on until it can reload: imports alone take a second."""
    if sys.argv[1:2] == ["serve"]:
        hangup.ignore()
    from proxy.cli import main as command_line

    command_line.main()


if __name__ == "__main__":
    main()
