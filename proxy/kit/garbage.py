"""Garbage collection of a process that holds much for long and makes little that is cyclic.

A full collection of a service with lists of 10 000 entries stops its event loop for 170 ms, and finds nothing.
"""

import gc


def tune() -> None:
    """Leave out what is there after the start, and collect less often. To be called once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def exempt() -> None:
    """Leave out what is there now. It is still freed when the last reference to it goes, unless it is in a cycle.

    Takes microseconds: nothing is collected before. To be called after something large and long-lived was made.
    """
    gc.freeze()
