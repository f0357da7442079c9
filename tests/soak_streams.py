"""Transactions for as long as one likes: Kafka Streams and the chain of workers under all faults.

    python tests/soak_streams.py --minutes 60 [--only streams|chain] [--cluster] [--seed 7]
        [--folder DIR]

Rounds of a minute or two each, with a fresh broker, or with three of them and a ZooKeeper: two
instances of a Streams application (4.x and 3.9 in turn), or the chain. Faults come at random, more
kinds of them than in the tests: state that is lost, and processes that are paused until others took
their place. Each round is judged as the tests judge. Ends with 1 and keeps the brokers' data where
a round failed.
"""

import argparse
import contextlib
import itertools
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4
from compat_tests.chain import run as chain_run
from compat_tests.chain.proxy import CuttingProxy
from compat_tests.streams import run as streams_run
from compat_tests.streams.brokers import restartable_broker
from compat_tests.streams.clusters import proxied_cluster, restartable_cluster
from compat_tests.streams.output import Tail
from compat_tests.streams.source import Feeder, create_topics, read_lines

PROGRESS_S = 90
FINISH_S = 180


def streams_round(version, folder, numbers, seconds, *, of_cluster=False):
    """Run two instances of the application under faults; return what was done, in words."""
    faults = {
        streams_run.Fault.APPLICATION_KILLED: 3,
        streams_run.Fault.STATE_LOST: 1,
        streams_run.Fault.APPLICATION_PAUSED: 1,
        streams_run.Fault.BROKER_KILLED: 4,
        streams_run.Fault.BOTH_KILLED: 2,
    }
    if of_cluster:
        faults |= {
            streams_run.Fault.LEADER_KILLED: 3,
            streams_run.Fault.GROUP_COORDINATOR_KILLED: 3,
            streams_run.Fault.TRANSACTION_COORDINATOR_KILLED: 3,
            streams_run.Fault.BROKER_STOPPED: 2,
            streams_run.Fault.ALL_BROKERS_KILLED: 1,
        }
    end = time.monotonic() + seconds
    struck = []
    with restartable_cluster(folder) if of_cluster else restartable_broker(folder) as broker:
        create_topics(broker.bootstrap, "lines", partitions=3)
        feeder = Feeder(broker.bootstrap, "lines", numbers.randint(50, 200))
        feeder.start()
        run = streams_run.Run(
            version=version, broker=broker, folder=folder, source="lines", instances=2
        )
        with run, run.tail() as tail:
            run.start()
            while time.monotonic() < end:
                tail.read_more(numbers.randint(200, 2000), PROGRESS_S)
                (fault,) = numbers.choices(list(faults), list(faults.values()))
                struck.append(fault)
                run.strike(fault, numbers)
            feeder.stop()
            run.finish(tail, read_lines(broker.bootstrap, "lines"), FINISH_S)
            return f"Streams {version}: {tail.count} updates, {len(struck)} faults"


def chain_round(folder, numbers, seconds, *, of_cluster=False):
    """Run the chain under faults; return what was done, in words."""
    faults = {
        chain_run.Fault.WORKER_KILLED: 3,
        chain_run.Fault.WORKER_PAUSED: 1,
        chain_run.Fault.CONNECTIONS_CUT: 3,
        chain_run.Fault.BROKER_KILLED: 3,
    }
    end = time.monotonic() + seconds
    struck = 0
    with contextlib.ExitStack() as stack:
        if of_cluster:
            broker, proxy = stack.enter_context(proxied_cluster(folder))
        else:
            proxy = stack.enter_context(CuttingProxy())
            broker = stack.enter_context(restartable_broker(folder, advertised_port=proxy.port))
            proxy.upstream_port = broker.port
        # A transaction of a few records has a dozen writes, each of which three brokers store.
        least, most = (30, 100) if of_cluster else (200, 600)
        chain = chain_run.Chain(
            broker, proxy, workers_per_stage=3, records_per_s=numbers.randint(least, most)
        )
        with chain, Tail(proxy.bootstrap, [chain_run.END]) as tail:
            while time.monotonic() < end:
                chain.read_more(tail, numbers.randint(50, 300 if of_cluster else 1500), PROGRESS_S)
                (fault,) = numbers.choices(list(faults), list(faults.values()))
                struck += 1
                chain.strike(fault, numbers)
            chain.finish(tail, FINISH_S)
        return f"chain: {chain.summary()}, {struck} faults"


def main() -> int:
    """Run rounds until the time is up or one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--round-seconds", type=float, default=60)
    parser.add_argument("--only", choices=["streams", "chain"])
    parser.add_argument("--cluster", action="store_true", help="three brokers instead of one")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    print(f"seed {options.seed} (the faults' order; their moments differ)", flush=True)
    numbers = random.Random(options.seed)
    kinds = [KAFKA_4, "chain", KAFKA_3_9, "chain"]
    if options.only is not None:
        kinds = [kind for kind in kinds if (kind == "chain") is (options.only == "chain")]
    begin = time.monotonic()
    for kind in itertools.cycle(kinds):
        if time.monotonic() - begin > options.minutes * 60:
            return 0
        folder = Path(tempfile.mkdtemp(prefix="kafkalite-soak-", dir=options.folder))
        try:
            if kind == "chain":
                done = chain_round(
                    folder, numbers, options.round_seconds, of_cluster=options.cluster
                )
            else:
                done = streams_round(
                    kind, folder, numbers, options.round_seconds, of_cluster=options.cluster
                )
        except Exception:
            traceback.print_exc()
            print(f"FAILED after {time.monotonic() - begin:.0f} s; data in {folder}", flush=True)
            return 1
        print(f"{time.monotonic() - begin:6.0f} s  {done}", flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
