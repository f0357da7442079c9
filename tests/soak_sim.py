#!/usr/bin/env python3
"""Run many seeds of the simulator on all processors, and sum up what was injected and checked.

    python tests/soak_sim.py                       10,000 seeds of level 1, 1,000 of level 2
    python tests/soak_sim.py --level1 50000 --level2 0 --first 1000000
    python tests/soak_sim.py --minutes 30          whatever fits

Ends with 1 if a seed failed; each one is printed with the command that repeats it.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kafkalite.sim.campaign import Failure, Plan, Summary, run_seeds

CHUNK = {1: 100, 2: 10}
LONE_SHARE = 5
"""Every so many-th seed of level 2 runs a broker that is alone."""


def run_chunk(plan, first, count):
    """Run some seeds; errors come back as text, because not all of them can be pickled."""
    summary = run_seeds(plan, range(first, first + count), failures_max=count)
    failures = [(failure.seed, str(failure)) for failure in summary.failures]
    summary.failures = []
    return plan, summary, failures


def chunks(options):
    for level, count in ((1, options.level1), (2, options.level2)):
        for index, first in enumerate(range(options.first, options.first + count, CHUNK[level])):
            brokers = 1 if level == 2 and index % LONE_SHARE == LONE_SHARE - 1 else 3
            size = min(CHUNK[level], options.first + count - first)
            yield Plan(level=level, brokers=brokers), first, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level1", type=int, default=10_000, help="seeds of level 1")
    parser.add_argument("--level2", type=int, default=1_000, help="seeds of level 2")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--minutes", type=float, help="begin nothing after this time")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="also write the summary there")
    options = parser.parse_args()
    totals = {1: Summary(), 2: Summary()}
    failed = []
    begin = time.perf_counter()
    with ProcessPoolExecutor(options.processes) as pool:
        work = [pool.submit(run_chunk, *chunk) for chunk in chunks(options)]
        for done in as_completed(work):
            if done.cancelled():
                continue
            plan, summary, failures = done.result()
            total = totals[plan.level]
            total.add(summary)
            total.elapsed_s = time.perf_counter() - begin  # chunks run side by side
            for seed, text in failures:
                failed.append(text)
                total.failures.append(Failure(plan, seed, RuntimeError(text)))
                print(f"{text}\n  {plan.command(seed)}", flush=True)
            if options.minutes is not None and total.elapsed_s > options.minutes * 60:
                for waiting in work:
                    waiting.cancel()
    for level, total in totals.items():
        print(f"level {level}: " + "\n  ".join(total.lines()[:2]))
    print(f"{len(failed)} seeds failed")
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    str(level): {
                        "runs": total.runs,
                        "events": total.events,
                        "acknowledged": total.acknowledged,
                        "faults": total.faults,
                    }
                    for level, total in totals.items()
                }
                | {"failed": failed},
                indent=2,
            )
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
