"""Several brokers' replicas of one topic, without network: images and fetches are made by hand."""

from dataclasses import replace
from uuid import UUID

from kafkalite.config import load_config
from kafkalite.isr.leader_role import IsrAccepted
from kafkalite.isr.partition_read import IsolationLevel
from kafkalite.isr.pending_acks import PendingAck
from kafkalite.isr.replicas import ReplicaManager
from kafkalite.log.manager import LogManager
from kafkalite.meta.changes import PartitionChanged, TopicCreated
from kafkalite.meta.image import BrokerImage, Image, PartitionImage
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import KafkaError
from tests.log.log_kit import FakeClock, batch
from tests.log.sim_disk import SimDisk

TOPIC_ID = UUID(int=7)
TP = TopicPartition("t", 0)


class IsrMember:
    """One broker."""

    def __init__(self, broker_id, clock, config):
        self.broker_id = broker_id
        self.clock = clock
        self.config = config
        self.disk = SimDisk()
        self.disk.make_directory("/data")
        self.open()

    def open(self):
        self.logs = LogManager(["/data"], self.disk, self.clock)
        self.logs.claim(node_id=self.broker_id)
        self.logs.load(lambda tp: self.config.log_config())
        self.replicas = ReplicaManager(self.broker_id, self.logs, self.config)

    def restart(self, image):
        self.replicas.write_high_watermarks()
        self.logs.close()
        self.open()
        self.replicas.load(image)

    @property
    def partition(self):
        return self.replicas.hosted(TP)

    @property
    def records(self):
        return b"".join(bytes(data) for data in self.partition.log.read_batches(0))


class ReplicaKit:
    """Brokers 1 to `count`; the image says what is, and `change` makes another."""

    def __init__(self, count=3, **settings):
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = load_config(overrides=named)
        self.clock = FakeClock()
        self.members = {n: IsrMember(n, self.clock, self.config) for n in range(1, count + 1)}
        self.reachable = set(self.members)
        ids = tuple(self.members)
        self.state = PartitionImage(ids, ids, 1)
        changes = [TopicCreated(name="t", topic_id=TOPIC_ID, partitions=(self.state,))]
        brokers = {
            n: BrokerImage(broker_id=n, endpoints={"PLAINTEXT": ("h", n)}, rack=f"rack{n}")
            for n in ids
        }
        self.image = Image(brokers=brokers).apply(changes)
        for member in self.members.values():
            member.replicas.load(self.image)

    def __getitem__(self, broker_id):
        return self.members[broker_id].partition

    def change(self, **changed):
        """Commit another state of the partition; those within reach hear of it."""
        epochs = {"partition_epoch": self.state.partition_epoch + 1}
        if "leader" in changed:
            epochs["leader_epoch"] = self.state.leader_epoch + 1
        self.state = replace(self.state, **epochs, **changed)
        changes = [PartitionChanged(name="t", topic_id=TOPIC_ID, index=0, state=self.state)]
        self.image = self.image.apply(changes)
        for broker_id in self.reachable:
            self.members[broker_id].replicas.on_changes(changes, self.image)

    def answer(self, leader_id):
        """Let the controller accept what a leader proposes; others hear of it, too."""
        for partition, proposal in self.members[leader_id].replicas.take_isr_changes():
            assert proposal.partition_epoch == self.state.partition_epoch
            self.change(isr=tuple(member.broker_id for member in proposal.isr))
            answer = IsrAccepted(
                leader_epoch=self.state.leader_epoch,
                partition_epoch=self.state.partition_epoch,
                isr=self.state.isr,
            )
            partition.on_isr_answer(proposal, answer)

    def append(self, leader_id, *values, all_acks=False):
        return self[leader_id].append(
            batch(*values), now_ms=self.clock.wall_ms(), all_acks=all_acks
        )

    def fetch(self, follower_id, leader_id):
        """Let a follower fetch once; return whether it got on."""
        follower, leader = self[follower_id], self[leader_id]
        offset, epoch, leader_epoch, start_offset = follower.fetch_position()
        leader.check_leader_epoch(leader_epoch)
        if epoch >= 0:
            diverging = leader.diverging_epoch(offset, epoch)
            if diverging is not None:
                own = follower.log.end_offset_for(diverging[0])[1]
                follower.truncate_to(min(own, diverging[1]))
                return True
        leader.on_follower_fetch(follower_id, -1, offset, start_offset, self.clock.monotonic_ms())
        read = leader.read(
            offset,
            max_bytes=1 << 20,
            min_one_batch=True,
            isolation=IsolationLevel.READ_UNCOMMITTED,
            as_replica=True,
        )
        if len(read.region):
            follower.append_as_follower(bytearray(read.region.read()), leader_epoch=leader_epoch)
        follower.advance_follower(read.high_watermark, read.log_start_offset)
        return len(read.region) > 0

    def catch_up(self, leader_id, *follower_ids):
        for follower_id in follower_ids or self.members:
            if follower_id != leader_id:
                for _ in range(20):
                    if not self.fetch(follower_id, leader_id):
                        break

    def wait(self, leader_id, required_offset, *, timeout_ms=1_000):
        waiter = PendingAck(
            required_offset, self.clock.monotonic_ms() + timeout_ms, lambda done: None
        )
        self[leader_id].add_ack_waiter(waiter)
        return waiter


def refusal(do, *arguments, **options):
    try:
        do(*arguments, **options)
    except KafkaError as error:
        return error.code
    raise AssertionError("not refused")
