"""Worker process: `python -m proxy.workers`, started by supervisor.py only."""

from proxy.kit import hangup


def main() -> None:
    """Run the worker."""
    hangup.ignore()
    from proxy.workers import worker

    worker.main()


if __name__ == "__main__":
    main()
