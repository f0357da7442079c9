"""Runs the chain under faults for as long as wanted: `python -m tests.soak_transactions --help`.

Each round has a broker, a data directory and a seed of its own, and is checked as a whole; the
first anomaly ends the run with code 1 and the seed.
"""

import argparse
import itertools
import sys
import tempfile
import time

from tests.txn.chain import Chain

COLUMNS = "{:>6} {:>9} {:>8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>9}"


def run_round(seed, options):
    """Run one round; return its row of the table and what was found."""
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="kafkalite-soak-") as directory,
        Chain(
            directory, partitions=options.partitions, workers=options.workers, seed=seed
        ) as chain,
    ):
        chain.fill(options.records)
        chain.run(faults=options.faults)
        found = chain.check()
        counts = chain.transactions()
    committed = counts["read_committed"]
    row = COLUMNS.format(
        seed,
        options.records,
        committed,
        counts["read_uncommitted"] - committed,
        chain.faults["connections"],
        chain.faults["worker"],
        chain.faults["broker"],
        len(found),
        f"{time.monotonic() - started:.0f} s",
    )
    return row, found


def main():
    """Run rounds until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="begin no round after this")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--records", type=int, default=30_000, help="of each round")
    parser.add_argument("--faults", type=int, default=40, help="of each round")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=3)
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    header = "seed records committed aborted cuts killed restarts found time"
    print(COLUMNS.format(*header.split()), flush=True)
    for seed in itertools.count(options.seed):
        row, found = run_round(seed, options)
        print(row, flush=True)
        if found:
            print(*found, sep="\n")
            sys.exit(1)
        if time.monotonic() > end:
            return


if __name__ == "__main__":
    main()
