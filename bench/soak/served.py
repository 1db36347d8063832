"""The service as anybody starts it, which on SIGUSR1 gives back memory that it does not use.

What is left is what it holds on to: neither garbage that waits for the collector, nor room that the allocator keeps
from a moment of much load.
"""

import ctypes
import gc
import signal

from proxy.cli.main import main


def give_back(*_: object) -> None:
    """Collect all garbage, and return free memory to the system where the C library can (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, give_back)
    main()
