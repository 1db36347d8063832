"""Judge process of evidence: reads a sample of exchanges from standard input, and prints what it says.

Started by proxy/evidence/sampler.py. It does no other I/O, and runs at low priority.
"""

import os
import signal
import sys
import time

from proxy.evidence import messages
from proxy.tools.conform import passive, reading
from proxy.tools.conform.exchanges import UpstreamExchange, decoded

NICE = 19  # niceness: responses have priority
CPU_SECONDS = 5.0  # after which the rest of a sample is left out


def judge(sample: list[messages.SampledExchange]) -> messages.JudgedSample:
    """Check the exchanges of a sample, until CPU_SECONDS have been used."""
    checks = passive.Passive(reading.load())
    for each in sample:
        if time.process_time() > CPU_SECONDS:
            break
        checks.add(_exchange(each))
    return messages.JudgedSample(checks.evidence(), time.process_time())


def _exchange(sampled: messages.SampledExchange) -> UpstreamExchange:
    request = decoded(sampled.request) if sampled.request else {}
    return UpstreamExchange(
        decoded(sampled.body),
        status=sampled.status,
        headers=sampled.headers,
        query=request.get("query", ""),
        variables=request.get("variables") or {},
        operation=request.get("operationName"),
        authorized=bool(sampled.request),
        at=sampled.at,
    )


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    sys.stdout.buffer.write(messages.encode(judge(messages.decode_sample(sys.stdin.buffer.read()))))
