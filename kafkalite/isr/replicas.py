"""The partitions that this broker holds, kept in step with the cluster's metadata."""

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.isr.follower_role import NO_LEADER, not_leader, offline, unknown_id
from kafkalite.isr.leader_role import ReplicationContext
from kafkalite.isr.leaving_logs import LeavingLogs
from kafkalite.isr.offline import OfflineReplica
from kafkalite.isr.partition import Partition
from kafkalite.isr.recovering import LogEnd, Recoveries, RecoveringLeader
from kafkalite.isr.state import IsrMember
from kafkalite.isr.throttle import LeaderThrottle
from kafkalite.isr.traffic import Traffic
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    BrokerUnregistered,
    ConfigsChanged,
    ImageReplaced,
    LeaderEpochsRaised,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.log_import import is_stray
from kafkalite.types import INTERNAL_TOPICS, ZERO_UUID, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig
    from kafkalite.isr.state import IsrChange
    from kafkalite.log.log import Log
    from kafkalite.log.manager import LogManager
    from kafkalite.meta.image import Change, Image, TopicImage

logger = logging.getLogger("kafkalite.isr")

LOGS_AT_ONCE_MAX = 10
"""Logs made or deleted in one go, some 400 us each; others have their turn afterwards."""

Listener = Callable[[], object]


class ReplicaManager:
    """All replicas of one broker, by name and by topic ID.

    The only subscriber of metadata that creates and deletes logs.
    """

    def __init__(self, broker_id: int, logs: "LogManager", config: "BrokerConfig") -> None:
        self.on_taken_up: Callable[[Iterable[str]], object] = _nothing
        """Called with the topics of which `retry_offline` could make a log."""
        self.on_unopened: Callable[[], object] = _nothing
        """Called when `open_some` has something to do."""
        self._broker_id = broker_id
        self._logs = logs
        self._config = config
        self._clock = logs.clock
        self._image: Image | None = None
        self._partitions: dict[tuple[str, int], Partition] = {}
        """Those led here."""
        self._hosted: dict[tuple[str, int], Partition] = {}
        self._by_topic: dict[str, dict[int, Partition]] = {}
        self.traffic = Traffic()
        self._offline: dict[tuple[str, int], OfflineReplica] = {}
        """Partitions placed here whose log cannot be opened."""
        self._unopened: dict[str, dict[int, None]] = {}
        """Partitions placed here whose log is made when it is asked for, or its turn comes."""
        self._leaving = LeavingLogs(logs)
        self._room = LOGS_AT_ONCE_MAX
        """Logs that may still be made or deleted in this go."""
        self._names: dict[UUID, str] = {}
        self._ids: dict[str, UUID] = {}
        self._high_watermarks: Mapping[TopicPartition, int] = {}
        """As they were written last."""
        self._proposing: dict[tuple[str, int], Partition | OfflineReplica | RecoveringLeader] = {}
        self._following_listeners: list[Listener] = []
        self._isr_change_listeners: list[Listener] = []
        self._following_moved: dict[tuple[str, int], None] = {}
        self.throttle = LeaderThrottle(
            config.int("leader.replication.throttled.rate"),
            window_ms=config.int("replication.quota.window.size.seconds") * 1_000,
            now_ms=self._clock.monotonic_ms(),
        )
        self._replication = ReplicationContext(
            broker_id=broker_id,
            lag_ms_max=config.int("replica.lag.time.max.ms"),
            is_eligible=self._is_eligible,
            is_alive=self._is_alive,
            on_isr_change=self._on_isr_change,
            traffic=self.traffic,
        )
        self.recoveries = Recoveries(logs.doubtful, self._replication)
        """Partitions that this broker leads only after others were heard (rule 234)."""
        logs.bounds = self._bounds
        logs.on_failed = self._on_failed
        logs.keeper.shortened = self._on_shortened

    # --- Finding ---------------------------------------------------------------------------------

    @property
    def broker_id(self) -> int:
        """Of this broker."""
        return self._broker_id

    def partition(self, topic: str, index: int) -> Partition:
        """Return the partition, which is led here.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER if it is led elsewhere, or by nobody;
                UNKNOWN_TOPIC_OR_PARTITION; KAFKA_STORAGE_ERROR if its log is offline.
        """
        partition = self._partitions.get((topic, index))
        if partition is None:
            hosted = self.hosted(TopicPartition(topic, index))
            if hosted is None:
                raise self._absence(topic, index)
            if not hosted.is_leader:
                raise not_leader(hosted.topic_partition, hosted.leader_id)
            partition = hosted
        if partition.log.failure is not None:
            raise offline(partition.topic_partition, partition.log.failure)
        return partition

    def partition_by_id(self, topic_id: UUID, index: int) -> Partition:
        """Return the partition of the topic with this ID (KIP-516), which is led here.

        Raises:
            KafkaError: UNKNOWN_TOPIC_ID (also that of a topic deleted and made anew, rule 25),
                else as `partition`.
        """
        name = self._names.get(topic_id)
        if name is None:
            raise unknown_id(topic_id)
        return self.partition(name, index)

    def replica(self, topic: str, index: int) -> Partition:
        """Return the partition in whatever role it has here.

        Raises:
            KafkaError: as `partition`, NOT_LEADER_OR_FOLLOWER if there is no replica here.
        """
        partition = self.hosted(TopicPartition(topic, index))
        if partition is None:
            raise self._absence(topic, index)
        if partition.log.failure is not None:
            raise offline(partition.topic_partition, partition.log.failure)
        return partition

    def replica_by_id(self, topic_id: UUID, index: int) -> Partition:
        """Return the same of the topic with this ID. Raises as `partition_by_id`."""
        name = self._names.get(topic_id)
        if name is None:
            raise unknown_id(topic_id)
        return self.replica(name, index)

    def find(self, topic_partition: TopicPartition) -> Partition | None:
        """Return the partition if it is led here, None if not."""
        found = self._partitions.get(topic_partition)
        if found is None and self._unopened and self.hosted(topic_partition) is not None:
            found = self._partitions.get(topic_partition)
        return found

    def hosted(self, topic_partition: TopicPartition) -> Partition | None:
        """Return the partition in whatever role it has here, None if there is no replica."""
        hosted = self._hosted.get(topic_partition)
        if hosted is None and self._unopened:
            topic, index = topic_partition
            if index in self._unopened.get(topic, ()):
                self._open_now(topic, (index,))
                hosted = self._hosted.get(topic_partition)
        return hosted

    def partitions(self) -> Iterable[Partition]:
        """Return all partitions of this broker, in any role, whose log there is."""
        return self._hosted.values()

    def partitions_of(self, topic: str) -> dict[int, Partition]:
        """Return the partitions of a topic that are led here, by index."""
        if topic in self._unopened:
            self._open_now(topic, list(self._unopened[topic]))
        hosted = self._by_topic.get(topic, {})
        return {index: each for index, each in hosted.items() if each.is_leader}

    def _absence(self, topic: str, index: int) -> KafkaError:
        offline = self._offline.get((topic, index))
        if offline is not None:
            # Another one each time: an exception keeps the frames of all who raised it.
            return KafkaError(offline.error.code, offline.error.message)
        state = None if self._image is None else self._image.partition(topic, index)
        if state is not None:
            return not_leader(f"{topic}-{index}", state.leader)
        return KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{index} is not on this broker"
        )

    # --- Making logs in the course of time -------------------------------------------------------

    def open_some(self) -> bool:
        """Make some of the logs that are missing, or delete some (rule 251); say if more wait."""
        self._room = LOGS_AT_ONCE_MAX
        while self._room > 0 and self._unopened:
            topic, indexes = next(iter(self._unopened.items()))
            self._open_now(topic, list(indexes)[: self._room])
        self._leaving.delete_some(max(0, self._room))
        self._tell_followers()
        return bool(self._unopened or self._leaving)

    def _open_now(self, name: str, indexes: Iterable[int]) -> None:
        assert self._image is not None
        topic = self._image.topics[name]
        for index in indexes:
            self._forget_unopened(name, index)
            partition = self._open(topic, index)
            if partition is not None:
                self._give_role(partition, topic, index)

    def _put_off(self, topic: "TopicImage", index: int) -> bool:
        """Have a log made later, as enough were made in this go; False if it is to be there now."""
        name, key = topic.name, TopicPartition(topic.name, index)
        if index in self._unopened.get(name, ()):
            return True
        if self._room > 0 or name in INTERNAL_TOPICS or key in self._offline:
            return False
        if self._logs.get(key) is not None and key not in self._leaving:
            return False
        if not self._unopened:
            self.on_unopened()
        self._unopened.setdefault(name, {})[index] = None
        return True

    def _forget_unopened(self, name: str, index: int) -> None:
        indexes = self._unopened.get(name)
        if indexes is not None:
            indexes.pop(index, None)
            if not indexes:
                del self._unopened[name]

    # --- Following others ------------------------------------------------------------------------

    def followed(self, name: tuple[str, int]) -> Partition | None:
        """Return a partition that follows a leader, None if it does not."""
        found = self._hosted.get(name)
        if found is None or found.is_leader or found.leader_id == NO_LEADER:
            return None
        return found if found.log.failure is None else None

    def take_following(self) -> Iterator[tuple[str, int]]:
        """Yield the partitions of which `followed` or the leader epoch may be another."""
        while self._following_moved:
            moved, self._following_moved = self._following_moved, {}
            yield from moved

    def subscribe_following(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after metadata changed what `take_following` gives: at first all.

        Returns a function that ends this.
        """
        self._following_listeners.append(listener)
        self._following_moved.update(dict.fromkeys(self._hosted))
        return lambda: self._following_listeners.remove(listener)

    # --- The ISR ---------------------------------------------------------------------------------

    def subscribe_isr_changes(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` when `take_isr_changes` has some; returns a function that ends it."""
        self._isr_change_listeners.append(listener)
        return lambda: self._isr_change_listeners.remove(listener)

    def take_isr_changes(
        self, held: Container[TopicPartition] = ()
    ) -> "list[tuple[Partition | OfflineReplica | RecoveringLeader, IsrChange]]":
        """Return the changes of ISRs that are to be asked of the controller, each once.

        Those of `held` partitions are left for another time.
        """
        proposing = {tp: each for tp, each in self._proposing.items() if tp not in held}
        for topic_partition in proposing:
            del self._proposing[topic_partition]
        taken = [(partition, partition.take_isr_change()) for partition in proposing.values()]
        return [(partition, proposal) for partition, proposal in taken if proposal is not None]

    def tick(self) -> None:
        """Look for lagging followers of all partitions; due each half replica.lag.time.max.ms.

        And whether a log can be made by now that could not be.
        """
        self._look_at_followers()
        self.retry_offline()
        self._end_recoveries()

    def on_follower_ahead(
        self, name: TopicPartition, leader_epoch: int, member: IsrMember, end: LogEnd
    ) -> None:
        """Take note of how far a follower has come of a partition that waits for that."""
        self.recoveries.on_follower(name, leader_epoch, member, end)
        self._end_recoveries()

    def _end_recoveries(self) -> None:
        """Lead what others have no more of than this broker."""
        decided = self.recoveries.take_decided(self._clock.real_monotonic_ms())
        for name, index in decided:
            if self._image is not None and name in self._image.topics:
                self._apply(self._image.topics[name], (index,))
        if decided:
            self.on_taken_up(sorted({name for name, _ in decided}))

    def retry_offline(self) -> None:
        """Make the logs that could not be made: their disk may have been full for a moment."""
        taken_up: set[str] = set()
        for name, index in list(self._offline):
            topic = None if self._image is None else self._image.topics.get(name)
            if topic is not None and index < len(topic.partitions):
                self._apply(topic, (index,))
                if (name, index) in self._hosted:
                    taken_up.add(name)
        self._tell_followers()
        if taken_up:
            self.on_taken_up(sorted(taken_up))

    def _look_at_followers(self) -> None:
        now_ms = self._clock.real_monotonic_ms()
        for partition in list(self._partitions.values()):
            partition.tick(now_ms)

    def write_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint`, unless it is up to date (rule 169).

        A broker without followers needs none: what it has is committed.
        """
        offsets = {each.topic_partition: each.high_watermark for each in self._hosted.values()}
        if offsets == self._high_watermarks:
            return
        if not self._high_watermarks and all(
            each.is_leader and each.leader is None for each in self._hosted.values()
        ):
            return
        try:
            self._logs.write_high_watermarks(offsets)
        except OSError as error:
            logger.warning("high watermarks could not be written: %s", error)
        else:
            self._high_watermarks = offsets

    def _on_isr_change(self, partition: Partition | OfflineReplica | RecoveringLeader) -> None:
        if partition.topic_partition not in self._proposing:
            self._proposing[partition.topic_partition] = partition
            for listener in list(self._isr_change_listeners):
                listener()

    def _on_failed(self, log: "Log") -> None:
        partition = self._hosted.get(log.topic_partition)
        if partition is not None and partition.log is log:
            partition.step_down()
            partition.wake_all()

    def _on_shortened(self, log: "Log") -> None:
        partition = self._hosted.get(log.topic_partition)
        if partition is not None and partition.log is log:
            partition.wake_all()

    def _is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        broker = None if self._image is None else self._image.brokers.get(broker_id)
        if broker is None or broker.shutting_down:
            return False
        return broker_epoch == -1 or broker.broker_epoch in (-1, broker_epoch)

    def _is_alive(self, broker_id: int) -> bool:
        return self._image is not None and broker_id in self._image.brokers

    def _bounds(self, log: "Log") -> tuple[int, int]:
        """Return (high watermark, last stable offset) for retention and compaction."""
        partition = self._hosted.get(log.topic_partition)
        if partition is None or partition.log is not log:
            return 0, 0  # nothing is known of it yet, so nothing may go
        return partition.high_watermark, partition.last_stable_offset

    # --- Metadata --------------------------------------------------------------------------------

    def load(self, image: "Image") -> None:
        """Take up every partition that the metadata places here, at the start of a broker.

        Also where the whole image was replaced. A log that belongs to an earlier topic of the same
        name, or to one that was moved to other brokers, is deleted; one that is missing is made
        anew, which only loses what was lost already.
        """
        self._image = image
        self._room = LOGS_AT_ONCE_MAX
        if not self._hosted:
            self._high_watermarks = self._logs.high_watermarks()
        for name, topic_id in list(self._ids.items()):
            topic = image.topics.get(name)
            if topic is None or topic.topic_id != topic_id:
                self._remove(name, topic_id)
        for topic in image.topics.values():
            for index in range(len(topic.partitions)):
                self._delete_other(topic, index)
            self._apply(topic, range(len(topic.partitions)))
            self._reconfigure(topic)
        self._tell_followers()

    def on_changes(self, changes: "Iterable[Change]", image: "Image") -> None:
        """Follow one commit of metadata; synchronous, so that who asked for it finds it done.

        A change may be told twice, or late: the image says what is.
        """
        self._image = image
        self._room = LOGS_AT_ONCE_MAX
        for change in changes:
            match change:
                case TopicCreated() | PartitionsAdded():
                    topic = image.topics.get(change.name)
                    if topic is not None:
                        self._apply(topic, range(len(topic.partitions)))
                case TopicDeleted():
                    self._remove(change.name, change.topic_id, is_deleted=True)
                case PartitionChanged():
                    topic = image.topics.get(change.name)
                    if topic is not None and 0 <= change.index < len(topic.partitions):
                        self._apply(topic, (change.index,))
                case LeaderEpochsRaised():
                    for topic in image.topics.values():
                        self._apply(topic, range(len(topic.partitions)))
                case ConfigsChanged() if change.resource_type == TOPIC_RESOURCE:
                    if change.resource_name in image.topics:
                        self._reconfigure(image.topics[change.resource_name])
                case ConfigsChanged() if change.resource_type == BROKER_RESOURCE:
                    self.throttle.set_rate(self._config.int("leader.replication.throttled.rate"))
                    self._following_moved.update(
                        dict.fromkeys(self._hosted)
                    )  # num.replica.fetchers may be another
                    for topic in image.topics.values():
                        self._reconfigure(topic)
                case ImageReplaced():
                    self.load(image)
                case BrokerUnregistered():
                    # A dead replica outside the ISR may be what high watermarks wait for.
                    self._look_at_followers()
        self._tell_followers()

    def _apply(self, topic: "TopicImage", indexes: Iterable[int]) -> None:
        """Hold those of these partitions that are placed here, and no others, in their roles."""
        known = self._ids.get(topic.name)
        if known is not None and known != topic.topic_id:
            self._remove(topic.name, known)
        self._names[topic.topic_id] = topic.name
        self._ids[topic.name] = topic.topic_id
        for index in indexes:
            if self._broker_id not in topic.partitions[index].replicas:
                self._drop(TopicPartition(topic.name, index), None)
                continue
            partition = self._hosted.get((topic.name, index))
            if partition is None:
                if self._put_off(topic, index):
                    continue
                partition = self._open(topic, index)
            if partition is not None:
                self._give_role(partition, topic, index)

    def _open(self, topic: "TopicImage", index: int) -> Partition | None:
        """Open or create the log of a partition; None if its disk fails it."""
        self._room -= 1
        state = topic.partitions[index]
        config = self._config.log_config(topic.configs)
        topic_partition = TopicPartition(topic.name, index)
        if topic_partition in self._leaving:
            self._leaving.delete(topic_partition)
        try:
            log = self._logs.get(topic_partition) or self._logs.create(
                topic_partition, topic.topic_id, config
            )
        except KafkaError as error:
            # The partition stays without a log: its clients hear of it, the others go on.
            offline = self._offline.get(topic_partition)
            if offline is None:
                logger.error("%s cannot be served: %s", topic_partition, error)
                offline = OfflineReplica(topic_partition, topic.topic_id, self._replication, error)
                self._offline[topic_partition] = offline
            offline.on_state(state, error, self._clock.monotonic_ms())
            if offline.has_proposal:
                self._on_isr_change(offline)
            return None
        if self._offline.pop(topic_partition, None) is not None:
            self._proposing.pop(topic_partition, None)
        log.update_config(config)
        if log.topic_id == ZERO_UUID:  # its file was torn, or is older than topic IDs
            try:
                self._logs.set_topic_id(topic_partition, topic.topic_id)
            except KafkaError as error:
                logger.error("%s goes without its topic ID: %s", topic_partition, error)
        partition = Partition(log, leader_epoch=state.leader_epoch, replication=self._replication)
        if state.replicas != (self._broker_id,):
            high_watermark = self._high_watermarks.get(topic_partition, 0)
            partition.begin_as_follower(high_watermark=high_watermark)
        self._hosted[topic_partition] = partition
        self._by_topic.setdefault(topic.name, {})[index] = partition
        self.throttle.configure(TopicPartition(topic.name, index), topic.configs)
        return partition

    def _give_role(self, partition: Partition, topic: "TopicImage", index: int) -> None:
        state = topic.partitions[index]
        before = (partition.leader_id, partition.leader_epoch)
        now_ms = self._clock.real_monotonic_ms()
        if self.recoveries.holds(partition, state, now_ms):
            partition.become_follower(replace(state, leader=NO_LEADER))
        elif state.leader == self._broker_id:
            partition.become_leader(state, now_ms=now_ms)
        else:
            partition.become_follower(state)
        if partition.is_leader:
            self._partitions[partition.topic_partition] = partition
        else:
            self._partitions.pop(partition.topic_partition, None)
        if before != (partition.leader_id, partition.leader_epoch):
            self._on_following(partition.topic_partition)

    def _on_following(self, name: TopicPartition) -> None:
        if self._following_listeners:
            self._following_moved[name] = None

    def _tell_followers(self) -> None:
        if self._following_moved:
            for listener in list(self._following_listeners):
                listener()

    def _remove(self, name: str, topic_id: UUID, *, is_deleted: bool = False) -> None:
        """Forget a topic, and delete its logs; those of one that was never deleted are kept."""
        self._names.pop(topic_id, None)
        if self._ids.get(name) != topic_id:
            return  # of another topic that has the name by now
        del self._ids[name]
        indexes = [*self._by_topic.get(name, ())]
        indexes += [index for topic, index in self._offline if topic == name]
        self._unopened.pop(name, None)
        waits = is_deleted and name not in INTERNAL_TOPICS
        for index in indexes:
            self._drop(TopicPartition(name, index), None if is_deleted else topic_id, waits=waits)

    def _drop(self, key: TopicPartition, topic_id: UUID | None, *, waits: bool = False) -> None:
        """Delete a replica that does not belong here any more; nothing if there is none."""
        name, index = key
        self._forget_unopened(name, index)
        is_offline = self._offline.pop(key, None) is not None
        partition = self._hosted.pop(key, None)
        if partition is None and not is_offline:
            return
        self._partitions.pop(key, None)
        self.throttle.forget(key)
        self._proposing.pop(key, None)
        self.recoveries.forget(key)
        self._on_following(key)
        hosted = self._by_topic.get(name, {})
        hosted.pop(index, None)
        if not hosted:
            self._by_topic.pop(name, None)
            self.traffic.forget(name)
        if waits and self._room <= 0:
            self._leaving.put_off(key)
            self.on_unopened()
        else:
            self._room -= 1
            self._delete(key, topic_id)
        if partition is not None:
            partition.close()

    def _delete(self, key: TopicPartition, topic_id: UUID | None) -> None:
        """Delete a log, or keep it if its topic, of this id, is missing and never was deleted."""
        assert self._image is not None
        keeps = topic_id is not None and is_stray(key, topic_id, self._image)
        self._leaving.delete(key, is_stray=keeps)

    def _delete_other(self, topic: "TopicImage", index: int) -> None:
        """Delete a log that was found under this partition's name and is not wanted here."""
        topic_partition = TopicPartition(topic.name, index)
        log = self._logs.get(topic_partition)
        if log is None or topic_partition in self._hosted:
            return
        if log.topic_id not in (topic.topic_id, ZERO_UUID):
            logger.warning("%s is of topic ID %s, which is gone", topic_partition, log.topic_id)
            self._delete(topic_partition, log.topic_id)
        elif self._broker_id not in topic.partitions[index].replicas:
            logger.warning("%s was moved to other brokers; deleting it", topic_partition)
            self._delete(topic_partition, None)

    def _reconfigure(self, topic: "TopicImage") -> None:
        config = self._config.log_config(topic.configs)
        for index, partition in self._by_topic.get(topic.name, {}).items():
            self._logs.update_config(partition.topic_partition, config)
            partition.on_config_changed()
            self.throttle.configure(TopicPartition(topic.name, index), topic.configs)


def _nothing(*arguments: object) -> None:
    """Be told, and do nothing."""
