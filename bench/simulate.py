"""`python -m bench.simulate`: simulate years of the service, and find planted mistakes.

The exit code is 1 if an invariant is violated, or a mutant is not found; the shortest plan that shows it is printed.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.simulation import mutants, plan, world

YEAR = 365 * 86_400
SEEDS_MAX = 10_000  # in which each mutant is found


def main(arguments: list[str]) -> int:
    """Simulate what the arguments of a command line say; return the exit code."""
    parser = argparse.ArgumentParser("python -m bench.simulate", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--years", type=float, default=1.0, help="simulated years (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--mutants", action="store_true", help="say the first seed that finds each planted mistake")
    options = parser.parse_args(arguments)
    return _find_mutants(options.seed) if options.mutants else _simulate(options.years, options.seed)


def _simulate(years: float, first: int) -> int:
    began, seconds, seed = time.perf_counter(), 0.0, first
    while seconds < years * YEAR:
        outcome = world.simulate(plan.make(seed))
        if outcome.violations:
            print("\n".join(outcome.violations))
            print(world.shortest(plan.make(seed)))
            return 1
        seconds += outcome.seconds
        seed += 1
    minutes = (time.perf_counter() - began) / 60
    print(f"{seconds / YEAR:.1f} years in {minutes:.1f} minutes, seeds {first} to {seed - 1}: every invariant held")
    return 0


def _find_mutants(first: int) -> int:
    lost = 0
    for name in mutants.MUTANTS:
        with mutants.planted(name):
            seeds = range(first, first + SEEDS_MAX)
            found = next((seed for seed in seeds if world.simulate(plan.make(seed)).violations), None)
        lost += found is None
        print(f"{name}: {f'not found in {SEEDS_MAX} seeds' if found is None else f'seed {found}'}", flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
