"""`python -m bench.evidence`: passive checks on exchanges with a sandbox whose responses have faults.

Prints the exchanges, the core assumptions that they settle, and the time of a check. The exit code is 1 if an
assumption is contradicted: the sandbox keeps them all.
"""

import argparse
import asyncio
import sys
import time
from contextlib import closing
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support import mixed_traffic

import nexar_sandbox
from proxy.tools.conform import passive, reading


def main(arguments: list[str]) -> int:
    """Check what the arguments of a command line say; return the exit code."""
    parser = argparse.ArgumentParser("python -m bench.evidence", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--exchanges", type=int, default=100_000, help="exchanges to check (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the traffic (%(default)s)")
    options = parser.parse_args(arguments)
    return asyncio.run(_check(options.exchanges, options.seed))


async def _check(count: int, seed: int) -> int:
    catalogue = reading.load()
    checks, seconds = passive.Passive(catalogue), 0.0
    with closing(nexar_sandbox.open_catalog()) as catalog:
        key = nexar_sandbox.generate_key()
        async with mixed_traffic.sandbox(catalog, key, seed=seed, faults=mixed_traffic.FAULTS) as served:
            async for exchange in mixed_traffic.Traffic(served, seed).exchanges(count):
                began = time.process_time()
                contradicted = checks.add(exchange)
                seconds += time.process_time() - began
                if contradicted:
                    print(f"exchange {checks.exchanges}: contradicts {', '.join(contradicted)}", flush=True)
    outcomes = passive.outcomes(checks.evidence(), catalogue)
    core = [each for each in outcomes if each.tier == "core"]
    settled = sum(each.verdict != "not tested" for each in core)
    print(f"{count:,} requests, {checks.exchanges:,} responses; {settled} of {len(core)} core assumptions settled")
    print(f"{seconds / max(1, checks.exchanges) * 1000:.2f} ms a check")
    return int(any(each.verdict == "contradicted" for each in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
