"""Settings that Apache Kafka does not have, and the profiles: sets of defaults by use."""

from kafkalite.settings.config_def import ConfigType, Setting, Update

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING

OWN_SETTINGS: tuple[Setting, ...] = (
    Setting("kafkalite.auto.create.deleted.topics", BOOLEAN, True, update=Update.CLUSTER_WIDE),
    Setting("kafkalite.auto.create.topics.wait", BOOLEAN, True, update=Update.CLUSTER_WIDE),
    Setting("kafkalite.cluster.id", STRING, None),
    Setting("kafkalite.control", BOOLEAN, False),
    Setting("kafkalite.control.peers", ConfigType.LIST, None),
    Setting("kafkalite.group.evict.on.disconnect", BOOLEAN, False),
    Setting("kafkalite.http.allowed.hosts", ConfigType.LIST, None),
    Setting("kafkalite.http.listener", STRING, ""),
    Setting("kafkalite.http.token", ConfigType.PASSWORD, None),
    Setting("kafkalite.internal.topics.fit.brokers", BOOLEAN, False),
    Setting("kafkalite.journal.max.bytes", ConfigType.INT, 0, minimum=0),
    Setting("kafkalite.metadata.flush", BOOLEAN, True),
    Setting("kafkalite.metadata.follow", STRING, None),
    Setting("kafkalite.metadata.serve", STRING, None),
    Setting("kafkalite.metrics.labels", ConfigType.LIST, None),
    Setting(
        "kafkalite.metrics.names",
        ConfigType.LIST,
        ("jmx",),
        choices=("jmx", "persec", "reporter", "jvm"),
    ),
    Setting("kafkalite.profile", STRING, "dev", choices=("dev", "test", "kafka")),
    Setting("kafkalite.read.only", BOOLEAN, False),
    Setting("kafkalite.schema.registry", BOOLEAN, False),
    Setting("kafkalite.validate.records", BOOLEAN, False, update=Update.CLUSTER_WIDE),
    Setting("kafkalite.slow.request.ms", ConfigType.INT, -1, minimum=-1),
    Setting("kafkalite.zookeeper.jaas.config", ConfigType.PASSWORD, None),
)

_DEV = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "kafkalite.auto.create.deleted.topics": "false",
    "kafkalite.http.listener": "auto",
    "kafkalite.control": "true",
    "kafkalite.internal.topics.fit.brokers": "true",
    "kafkalite.validate.records": "true",
    "kafkalite.journal.max.bytes": "4194304",
    "kafkalite.slow.request.ms": "100",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dir": "kafkalite-data",
}

PROFILES: dict[str, dict[str, str]] = {
    "dev": _DEV,
    "test": {
        **_DEV,
        "group.consumer.assignment.interval.ms": "0",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "1",
        "group.consumer.min.session.timeout.ms": "1",
        "group.min.session.timeout.ms": "1",
        "kafkalite.group.evict.on.disconnect": "true",
        "kafkalite.http.listener": "",
        "kafkalite.metadata.flush": "false",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dir": "",
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "5",
    },
    "kafka": {},
}
"""Defaults that differ from Apache Kafka's, by profile.

dev: for a person at a machine; no waiting for more members before a group starts, loopback only,
data in the current directory, an HTTP port on 9080 or the next that is free, the records of every
batch looked at; no consumer brings back a topic that was deleted.
test: for the life of a test; any free port, a temporary directory (`log.dir` empty), nothing
forced to disk, small internal topics, members of classic groups gone as soon as their connection is
and those of consumer groups told of a rebalance within half a second.
kafka: Apache Kafka's own.
"""
