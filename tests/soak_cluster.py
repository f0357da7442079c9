"""Breaks a cluster under load for as long as wanted: `python -m tests.soak_cluster --help`.

Each round has a cluster, data and a seed of its own: clients work, faults are injected, everything
is healed, and the round is audited as a whole. The first finding ends the run with code 1 and the
seed; the data stay where they are. With `--json` the same command goes on where it was ended:
10,000 faults are 200 rounds, and take a night.
"""

import argparse
import itertools
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from kafkalite.security.shorthand import allow
from kafkalite.testing import Cluster
from tests.cluster.audit import audit
from tests.cluster.faults import WEIGHTS, Faults
from tests.cluster.workload import PATIENCE_S, Workload

SECURED = {
    "tls": True,
    "users": {"worker": "secret"},
    "acls": [allow("worker", "all", topic="*", group="*", transactional_id="*")],
}
"""Everything is encrypted, everybody logs in, also brokers and at ZooKeeper, and rules decide."""


def run_round(seed, data_dir, *, faults, gap_s, only=None, namespaces=False, secured=False):
    """Run one round; return what was injected, what was done, and what was found.

    Args:
        seed: of everything.
        data_dir: where all is kept.
        faults: how many, or the names of those that are to be, in their order.
        gap_s: time between two, on average.
        only: the name of the one that is to be.
        namespaces: whether links are cut in the kernel.
        secured: whether there is TLS, logins and rules.
    """
    security = SECURED if secured else {}
    with Cluster(3, data_dir=data_dir, namespaces=namespaces, **security) as cluster:
        injected = Faults(cluster, seed=seed, only=only)
        with Workload(cluster.client_settings(), seed=seed, folder=data_dir) as workload:
            workload.wait_progress(PATIENCE_S)
            for name in [None] * faults if isinstance(faults, int) else faults:
                injected.inject(name)
                time.sleep(injected.random.uniform(0, 2 * gap_s))
            cluster.wait_in_sync(timeout_s=PATIENCE_S)
            workload.wait_progress(PATIENCE_S)
            workload.finish()
            cluster.wait_in_sync(timeout_s=PATIENCE_S)
            found = audit(workload, [Path(b.data_dir) for b in cluster.brokers.values()])
            (Path(data_dir) / "faults.log").write_text("\n".join(injected.log) + "\n")
            return injected.counts, workload.counts(), found


def main():
    """Run rounds until the faults or the time are used up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=1_000, help="of all rounds")
    parser.add_argument("--each", type=int, default=50, help="faults of one round")
    parser.add_argument("--only", choices=WEIGHTS, help="the one fault to inject")
    parser.add_argument(
        "--namespaces", action="store_true", help="cut in the kernel; Linux, as root, no slow links"
    )
    parser.add_argument(
        "--secured", action="store_true", help="TLS, logins and rules everywhere, ZooKeeper too"
    )
    parser.add_argument("--gap", type=float, default=0.5, help="seconds between two, on average")
    parser.add_argument("--minutes", type=float, default=600, help="begin no round after this")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--json", type=Path, help="where the summary goes, and is gone on with")
    options = parser.parse_args()
    began = time.monotonic()
    before = {"rounds": 0, "seconds": 0, "faults": {}, "work": {}}
    if options.json and options.json.exists():
        before = json.loads(options.json.read_text())
    injected, done = Counter(before["faults"]), Counter(before["work"])
    for seed in itertools.count(options.seed + before["rounds"]):
        if injected.total() >= options.faults:
            break
        data_dir = tempfile.mkdtemp(prefix=f"kafkalite-soak-{seed}-")
        started = time.monotonic()
        counts, work, found = run_round(
            seed,
            data_dir,
            faults=options.each,
            gap_s=options.gap,
            only=options.only,
            namespaces=options.namespaces,
            secured=options.secured,
        )
        injected += counts
        done += Counter(work)
        print(
            f"seed {seed}: {counts.total()} faults, {sum(work.values()):,} operations, "
            f"{len(found)} findings, {time.monotonic() - started:.0f} s",
            flush=True,
        )
        if found:
            print(*found, sep="\n")
            print(f"data and logs of brokers and producers, and what was done when: {data_dir}")
            sys.exit(1)
        shutil.rmtree(data_dir, ignore_errors=True)
        summary = {
            "rounds": seed - options.seed + 1,
            "seconds": before["seconds"] + round(time.monotonic() - began),
            "faults": dict(injected.most_common()),
            "work": dict(done),
        }
        if options.json:
            options.json.write_text(json.dumps(summary, indent=1) + "\n")
        if time.monotonic() - began > options.minutes * 60:
            break
    print(injected.total(), "faults in all:", json.dumps(dict(injected.most_common()), indent=1))


if __name__ == "__main__":
    main()
