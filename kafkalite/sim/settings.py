"""Settings of simulated brokers: small, and in a hurry."""

from typing import Final

from kafkalite.sim.share_members import DELIVERIES_MAX

SETTINGS: Final = {
    "group.consumer.assignment.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "group.initial.rebalance.delay.ms": "100",
    "group.share.assignment.interval.ms": "100",
    "group.share.delivery.count.limit": str(DELIVERIES_MAX),
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.record.lock.duration.ms": "2000",
    "group.share.session.timeout.ms": "4000",
    "group.streams.assignment.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "100",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "4000",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
}

CLUSTER_SETTINGS: Final = {
    **SETTINGS,
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "replica.lag.time.max.ms": "2000",
    "replica.socket.timeout.ms": "2000",
    "controller.socket.timeout.ms": "2000",
    "replica.fetch.wait.max.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "700",
    "leader.imbalance.check.interval.seconds": "5",
    "zookeeper.connect": "simulated:2181",
}
