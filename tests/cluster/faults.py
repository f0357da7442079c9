"""Everything that can happen to a cluster, chosen by a seed, one after another or overlapping.

No more brokers than may fail are broken at once, most of the time: with two of three away nothing
can be acknowledged, which is right and shows little. Now and then it happens all the same, up to
all of them: what was acknowledged must be there when they are back.
"""

import contextlib
import random
import resource
import time
from collections import Counter

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from kafkalite.client.errors import ClientError
from kafkalite.wire.errors import KafkaError
from tests.cluster.workload import ORDERS, QUIET

WEIGHTS = {
    "kill leader": 4,
    "kill follower": 3,
    "kill controller": 3,
    "kill coordinator": 3,
    "stop broker": 3,
    "pause broker": 2,
    "isolate broker": 3,
    "cut one way": 2,
    "slow links": 1,
    "disconnect": 2,
    "expire session": 2,
    "expire all sessions": 1,
    "restart ZooKeeper": 1,
    "full disk": 2,
    "move leader": 3,
    "kill all": 1,
    "rolling restart": 1,
}
FILE_SIZE_WHEN_FULL = 1


class Faults:
    """Injects faults into a `Cluster` and takes them back.

    Args:
        cluster: a running `kafkalite.testing.Cluster`.
        seed: of what happens, where and for how long.
        only: name of the one thing that is to happen; None for all.
    """

    def __init__(self, cluster, *, seed, only=None):
        self.cluster = cluster
        self._weights = dict(WEIGHTS) if only is None else {only: WEIGHTS[only]}
        if cluster.namespaces is not None:
            self._weights.pop("slow links", None)  # they cannot be slowed down there
        self.random = random.Random(seed)
        self.counts = Counter()
        self.log = []
        self._ids = sorted(cluster.brokers)
        self._broken = {}

    def inject(self, name=None):
        """Do one thing, by chance if it is not named, keep it for a while, and heal it."""
        name = name or self.random.choices([*self._weights], [*self._weights.values()])[0]
        self._note(name)
        getattr(self, "_" + name.lower().replace(" ", "_"))()
        self._note("over")
        self.counts[name] += 1

    # --- Processes -------------------------------------------------------------------------------

    def _kill_leader(self):
        self._kill(self._leader_of(ORDERS))

    def _kill_follower(self):
        leader = self._leader_of(ORDERS)
        self._kill(self.random.choice([n for n in self._ids if n != leader]))

    def _kill_controller(self):
        self._kill(self.cluster.controller())

    def _kill_coordinator(self):
        topic = self.random.choice(["__consumer_offsets", "__transaction_state"])
        self._kill(self._leader_of(topic))

    def _kill(self, broker):
        broker = self._any_if_none(broker)
        self._note("kill", broker)
        self.cluster.kill(broker)
        self._sleep(0.0, 3.0)
        self.cluster.restart(broker)

    def _stop_broker(self):
        broker = self.random.choice(self._ids)
        self._note("stop", broker)
        self.cluster.stop(broker)
        self._sleep(0.0, 1.0)
        self.cluster.restart(broker)

    def _pause_broker(self):
        """Long enough, half of the time, that its session is over."""
        broker = self.random.choice(self._ids)
        self._note("pause", broker)
        self.cluster.pause(broker)
        try:
            self._sleep(0.2, 2 * self._session_s)
        finally:
            self.cluster.resume(broker)

    def _kill_all(self):
        for broker in self._ids:
            self.cluster.kill(broker)
        for broker in self.random.sample(self._ids, len(self._ids)):
            self.cluster.restart(broker)

    def _rolling_restart(self):
        for broker in self._ids:
            self.cluster.stop(broker)
            self.cluster.restart(broker)
            self.cluster.wait_in_sync(timeout_s=60)

    # --- Links -----------------------------------------------------------------------------------

    def _isolate_broker(self):
        broker = self.random.choice(self._ids)
        self._note("isolate", broker)
        self.cluster.isolate(broker)
        try:
            self._sleep(0.5, 2 * self._session_s)
        finally:
            self.cluster.heal(broker)

    def _cut_one_way(self):
        source, destination = self.random.sample(self._ids, 2)
        self._note("from", source, "to", destination)
        self.cluster.cut(source, destination, both_ways=False)
        try:
            self._sleep(0.5, 2 * self._session_s)
        finally:
            self.cluster.heal(source)

    def _slow_links(self):
        source, destination = self.random.sample(self._ids, 2)
        self._note("from", source, "to", destination)
        self.cluster.delay(source, destination, self.random.uniform(0.01, 0.3))
        try:
            self._sleep(0.5, 3.0)
        finally:
            self.cluster.heal(source)

    def _disconnect(self):
        source, destination = self.random.sample(self._ids, 2)
        self._note("from", source, "to", destination)
        self.cluster.disconnect(source, destination)

    # --- ZooKeeper, disks, leadership ------------------------------------------------------------

    def _expire_session(self):
        broker = self.random.choice(self._ids)
        self._note("session of", broker)
        self.cluster.expire_session(broker)

    def _expire_all_sessions(self):
        """As an ensemble does that was away for too long; brokers are told when they come back."""
        if self.random.random() < 0.5:
            self._note("ZooKeeper again")
            self.cluster.zookeeper.restart()
        for broker in self.random.sample(self._ids, len(self._ids)):
            self.cluster.expire_session(broker)

    def _restart_zookeeper(self):
        self.cluster.zookeeper.stop()
        self._sleep(0.0, 2 * self._session_s)
        self.cluster.zookeeper.restart()

    def _full_disk(self):
        """Let no file of a broker grow for a while; then there is room again, or another start."""
        broker = self.random.choice(self._ids)
        self._note("disk of", broker)
        pid = self.cluster.brokers[broker].pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_SIZE_WHEN_FULL, before[1]))
        self._sleep(0.2, 2.0)
        if self.random.random() < 0.5:
            self._note("room again")
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
            return
        self.cluster.kill(broker)
        self.cluster.restart(broker)

    def _move_leader(self):
        # Who was killed a moment ago cannot lead yet.
        with contextlib.suppress(KafkaError, ClientError, TimeoutError):
            self.cluster.move_leader(ORDERS, 0, self.random.choice(self._ids))

    def _note(self, *what):
        """Keep what happens when: the first thing one wants to know about a finding."""
        now = time.time()
        self.log.append(
            f"{time.strftime('%H:%M:%S', time.gmtime(now))},{now % 1 * 1000:03.0f} "
            + " ".join(map(str, what))
        )

    # --- Helpers ---------------------------------------------------------------------------------

    @property
    def _session_s(self):
        return self.cluster.session_timeout_s

    def _leader_of(self, topic):
        """Return the leader of some partition, None if nobody knows."""
        admin = AdminClient({**self.cluster.client_settings(), **QUIET})
        try:
            described = admin.describe_topics(TopicCollection([topic]), request_timeout=3)
            partitions = described[topic].result(5).partitions
        except KafkaException:
            return None
        leader = self.random.choice(partitions).leader
        return leader.id if leader is not None and leader.id in self._ids else None

    def _any_if_none(self, broker):
        return self.random.choice(self._ids) if broker in (None, -1) else broker

    def _sleep(self, least_s, most_s):
        time.sleep(self.random.uniform(least_s, most_s))
