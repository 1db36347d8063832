"""Entry point of the service in a soak: `v3bridge` that returns unused memory to the system on SIGUSR1.

The memory that remains is in use: it contains neither uncollected garbage nor free blocks that the allocator keeps
after a burst of load.
"""

import ctypes
import gc
import signal

from proxy.cli.main import main


def release_memory(*_: object) -> None:
    """Collect all garbage, and return free memory to the system where the C library can (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, release_memory)
    main()
