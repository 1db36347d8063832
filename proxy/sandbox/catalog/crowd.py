"""Describes batches of parts, in this process or in several.

Used by the loader: describing is nine tenths of the work of making a catalog. The processes are started anew, share
nothing, and are gone when the last batch is.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor

from proxy.sandbox.catalog import describing, lines, vocabulary

Batch = list[lines.PartLine]
# Batches that each process has in hand or waiting.
_AHEAD = 2


def described(
    batches: Iterator[Batch], words: vocabulary.Vocabulary, seed: int, processes: int
) -> Iterator[tuple[Batch, describing.Described]]:
    """Each batch with what there is to know of it, in their order. `words` must know all that the parts refer to."""
    if processes == 1:
        for batch in batches:
            yield batch, describing.describe(batch, words, seed)
        return
    # A terminal interrupts them all: it is for the one that asked to end the others.
    apart = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, apart, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as crowd:
        waiting: deque[tuple[Batch, Future[describing.Described]]] = deque()
        try:
            for batch in batches:
                waiting.append((batch, crowd.submit(describing.describe, batch, words, seed)))
                if len(waiting) > processes * _AHEAD:
                    yield waiting[0][0], waiting.popleft()[1].result()
            while waiting:
                yield waiting[0][0], waiting.popleft()[1].result()
        finally:
            crowd.shutdown(cancel_futures=True)
