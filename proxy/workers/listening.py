"""What is said where an address cannot be listened on: the same words for every command and event loop."""

import os

from proxy import errors


def refused(host: str, port: int, error: OSError) -> errors.ConfigError:
    """The mistake, with the system's reason alone: the loops put the address into theirs once more."""
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return errors.ConfigError(f"cannot listen on {host}:{port}: {reason}; choose another with --host or --port")
