#!/usr/bin/env python3
"""Run many seeds of the simulator on all processors, and sum up what was injected and checked.

    python tests/soak_sim.py                       10,000 seeds of level 1, 1,000 of level 2
    python tests/soak_sim.py --level1 50000 --level2 0 --first 1000000
    python tests/soak_sim.py --minutes 30          whatever fits
    python tests/soak_sim.py --level1 100000 --level2 10000 --json soak.json --minutes 60
                                                   an hour of it; the same command goes on with it

Ends with 1 if a seed failed; each one is printed with the command that repeats it.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kafkalite.sim.campaign import Failure, Plan, Summary, run_seeds

CHUNK = {1: 100, 2: 10}
LONE_SHARE = 5
"""One of so many chunks of level 2 runs a broker that is alone; in every second a topic grows."""


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
            grows = level == 2 and bool(index % 2)
            size = min(CHUNK[level], options.first + count - first)
            yield Plan(level=level, brokers=brokers, grows=grows), first, size


class Soak:
    """What was run, in this run and in those before it that the same file tells of."""

    def __init__(self, path):
        self.path = path
        self.totals = {1: Summary(), 2: Summary()}
        self.done = set()
        self.failed = []
        if path is not None and path.exists():
            stored = json.loads(path.read_text())
            self.done = {tuple(chunk) for chunk in stored["done"]}
            self.failed = stored["failed"]
            for level, total in self.totals.items():
                values = stored[str(level)]
                total.runs, total.events = values["runs"], values["events"]
                total.acknowledged, total.elapsed_s = values["acknowledged"], values["elapsed_s"]
                total.faults = values["faults"]

    def add(self, plan, first, size, summary, failures, elapsed_s):
        total = self.totals[plan.level]
        before_s = total.elapsed_s
        total.add(summary)
        total.elapsed_s = before_s + elapsed_s  # chunks run side by side
        self.done.add((plan.level, first, size))
        for seed, text in failures:
            self.failed.append(text)
            total.failures.append(Failure(plan, seed, RuntimeError(text)))
            print(f"{text}\n  {plan.command(seed)}", flush=True)
        if self.path is not None:
            values = {
                str(level): {
                    "runs": total.runs,
                    "events": total.events,
                    "acknowledged": total.acknowledged,
                    "elapsed_s": total.elapsed_s,
                    "faults": total.faults,
                }
                for level, total in self.totals.items()
            }
            values |= {"failed": self.failed, "done": sorted(self.done)}
            self.path.write_text(json.dumps(values) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level1", type=int, default=10_000, help="seeds of level 1")
    parser.add_argument("--level2", type=int, default=1_000, help="seeds of level 2")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--minutes", type=float, help="begin nothing after this time")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument(
        "--json", type=Path, help="where the sums go; what it has already is not run again"
    )
    options = parser.parse_args()
    soak = Soak(options.json)
    begin = marked = time.perf_counter()
    left = (each for each in chunks(options) if (each[0].level, *each[1:]) not in soak.done)
    with ProcessPoolExecutor(options.processes) as pool:
        running = {}
        while True:
            is_late = (
                options.minutes is not None and time.perf_counter() - begin > options.minutes * 60
            )
            # No more than are run: 110,000 seeds wait for nobody, and the time is kept.
            room = 0 if is_late else options.processes - len(running)
            for chunk in islice(left, room):
                running[pool.submit(run_chunk, *chunk)] = chunk
            if not running:
                break
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                _, first, size = running.pop(done)
                plan, summary, failures = done.result()
                now = time.perf_counter()
                soak.add(plan, first, size, summary, failures, now - marked)
                marked = now
    for level, total in soak.totals.items():
        print(f"level {level}: " + "\n  ".join(total.lines()[:2]))
    print(f"{len(soak.failed)} seeds failed")
    return 1 if soak.failed else 0


if __name__ == "__main__":
    sys.exit(main())
