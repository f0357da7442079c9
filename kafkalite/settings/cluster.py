"""Settings of the broker for its network, its place in the cluster, and replication."""

from kafkalite.settings.kinds import ConfigType, Setting, Update

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
CLUSTER_WIDE = Update.CLUSTER_WIDE
PER_BROKER = Update.PER_BROKER
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

CLUSTER_SETTINGS: tuple[Setting, ...] = (
    # Read-only in Apache Kafka; a container learns its outside address only after the start.
    Setting("advertised.listeners", LIST, None, update=PER_BROKER),
    Setting("alter.config.policy.class.name", CLASS, None),
    Setting("alter.log.dirs.replication.quota.window.num", INT, 11, minimum=1, inert=True),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, minimum=1, inert=True),
    Setting("auto.create.topics.enable", BOOLEAN, True),
    Setting("auto.leader.rebalance.enable", BOOLEAN, True),
    Setting("background.threads", INT, 10, minimum=1, update=CLUSTER_WIDE, inert=True),
    Setting("broker.heartbeat.interval.ms", INT, 2_000, inert=True),
    Setting("broker.id", INT, -1),
    Setting("broker.rack", STRING, None),
    Setting("broker.session.timeout.ms", INT, 9_000, inert=True),
    Setting("client.quota.callback.class", CLASS, None, inert=True),
    Setting("config.providers", LIST, (), update=CLUSTER_WIDE, inert=True),
    Setting("connection.failed.authentication.delay.ms", INT, 100, minimum=0),
    Setting("connections.max.idle.ms", LONG, 600_000),
    Setting("connections.max.reauth.ms", LONG, 0),
    Setting("controlled.shutdown.enable", BOOLEAN, True),
    Setting("controller.listener.names", LIST, ()),
    Setting(
        "controller.performance.always.log.threshold.ms",
        LONG,
        2_000,
        minimum=0,
        inert=True,
        internal=True,
    ),
    Setting(
        "controller.performance.sample.period.ms",
        LONG,
        60_000,
        minimum=100,
        inert=True,
        internal=True,
    ),
    Setting("controller.quorum.append.linger.ms", INT, 25, minimum=0, inert=True),
    Setting("controller.quorum.auto.join.enable", BOOLEAN, False, inert=True),
    Setting("controller.quorum.bootstrap.servers", LIST, (), inert=True),
    Setting("controller.quorum.election.backoff.max.ms", INT, 1_000, minimum=0, inert=True),
    Setting("controller.quorum.election.timeout.ms", INT, 1_000, minimum=0, inert=True),
    Setting("controller.quorum.fetch.max.bytes", INT, 1_048_576, minimum=1, inert=True),
    Setting("controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, minimum=1, inert=True),
    Setting("controller.quorum.fetch.timeout.ms", INT, 2_000, minimum=0, inert=True),
    Setting("controller.quorum.request.timeout.ms", INT, 2_000, minimum=0, inert=True),
    Setting("controller.quorum.retry.backoff.ms", INT, 20, minimum=0, inert=True),
    Setting("controller.quorum.voters", LIST, (), inert=True),
    Setting("controller.quota.window.num", INT, 11, minimum=1, inert=True),
    Setting("controller.quota.window.size.seconds", INT, 1, minimum=1, inert=True),
    Setting("controller.socket.timeout.ms", INT, 30_000),
    Setting("create.topic.policy.class.name", CLASS, None),
    Setting("default.replication.factor", INT, 1),
    Setting("delete.records.purgatory.purge.interval.requests", INT, 1, inert=True),
    Setting("delete.topic.enable", BOOLEAN, True),
    Setting("early.start.listeners", LIST, None, inert=True),
    Setting("fetch.max.bytes", INT, 57_671_680, minimum=1_024),
    Setting("fetch.purgatory.purge.interval.requests", INT, 1_000, inert=True),
    Setting(
        "follower.fetch.last.tiered.offset.enable", BOOLEAN, False, update=CLUSTER_WIDE, inert=True
    ),
    Setting(
        "follower.replication.throttled.rate",
        LONG,
        LONG_MAX,
        minimum=0,
        update=CLUSTER_WIDE,
        internal=True,
    ),
    Setting("initial.broker.registration.timeout.ms", INT, 60_000, inert=True),
    Setting("inter.broker.listener.name", STRING, None),
    Setting("internal.metadata.delete.delay.millis", LONG, 60_000, inert=True, internal=True),
    Setting("internal.metadata.log.segment.bytes", INT, None, inert=True, internal=True),
    Setting("internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, inert=True, internal=True),
    Setting("kafka.metrics.polling.interval.secs", INT, 10, minimum=1, inert=True),
    Setting("kafka.metrics.reporters", LIST, (), inert=True),
    Setting("leader.imbalance.check.interval.seconds", LONG, 300, minimum=1),
    Setting(
        "leader.replication.throttled.rate",
        LONG,
        LONG_MAX,
        minimum=0,
        update=CLUSTER_WIDE,
        internal=True,
    ),
    Setting(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    ),
    # Can be changed in Apache Kafka; here sockets are opened once.
    Setting("listeners", LIST, ("PLAINTEXT://:9092",)),
    Setting(
        "max.connection.creation.rate", INT, INT_MAX, minimum=0, update=CLUSTER_WIDE, inert=True
    ),
    Setting("max.connections", INT, INT_MAX, minimum=0, update=CLUSTER_WIDE),
    Setting("max.connections.per.ip", INT, INT_MAX, minimum=0, update=CLUSTER_WIDE),
    Setting(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        update=CLUSTER_WIDE,
        form="address counts",
    ),
    Setting("max.incremental.fetch.session.cache.slots", INT, 1_000, minimum=0),
    Setting("max.request.partition.size.limit", INT, 2_000, minimum=1),
    Setting("metadata.log.dir", STRING, None, inert=True),
    Setting(
        "metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, minimum=1, inert=True
    ),
    Setting("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, minimum=0, inert=True),
    Setting("metadata.log.segment.bytes", INT, 1_073_741_824, minimum=8_388_608, inert=True),
    Setting("metadata.log.segment.ms", LONG, 604_800_000, inert=True),
    Setting("metadata.max.idle.interval.ms", INT, 500, minimum=0, inert=True),
    Setting("metadata.max.retention.bytes", LONG, 104_857_600, inert=True),
    Setting("metadata.max.retention.ms", LONG, 604_800_000, inert=True),
    Setting(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        update=CLUSTER_WIDE,
        inert=True,
    ),
    Setting("metrics.num.samples", INT, 2, minimum=1, inert=True),
    Setting("metrics.recording.level", STRING, "INFO", inert=True),
    Setting("metrics.sample.window.ms", LONG, 30_000, minimum=1, inert=True),
    Setting("node.id", INT, 1, minimum=0),
    Setting("num.io.threads", INT, 8, minimum=1, update=CLUSTER_WIDE, inert=True),
    Setting("num.network.threads", INT, 3, minimum=1, update=CLUSTER_WIDE, inert=True),
    Setting("num.partitions", INT, 1, minimum=1),
    Setting("num.replica.fetchers", INT, 1, minimum=1, update=CLUSTER_WIDE, inert=True),
    Setting("process.roles", LIST, (), choices=("broker", "controller")),
    Setting("producer.purgatory.purge.interval.requests", INT, 1_000, inert=True),
    Setting("queued.max.request.bytes", LONG, -1),
    Setting("queued.max.requests", INT, 500, minimum=1, inert=True),
    Setting("quota.window.num", INT, 11, minimum=1, inert=True),
    Setting("quota.window.size.seconds", INT, 1, minimum=1, inert=True),
    Setting(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        LONG_MAX,
        minimum=0,
        update=CLUSTER_WIDE,
        inert=True,
        internal=True,
    ),
    Setting("replica.fetch.backoff.ms", INT, 1_000, minimum=0),
    Setting("replica.fetch.max.bytes", INT, 1_048_576, minimum=0),
    Setting("replica.fetch.min.bytes", INT, 1),
    Setting("replica.fetch.response.max.bytes", INT, 10_485_760, minimum=0),
    Setting("replica.fetch.wait.max.ms", INT, 500),
    Setting("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000),
    Setting("replica.lag.time.max.ms", LONG, 30_000),
    Setting("replica.selector.class", STRING, None),
    Setting("replica.socket.receive.buffer.bytes", INT, 65_536, inert=True),
    Setting("replica.socket.timeout.ms", INT, 30_000),
    Setting("replication.quota.window.num", INT, 11, minimum=1, inert=True),
    Setting("replication.quota.window.size.seconds", INT, 1, minimum=1),
    Setting("request.timeout.ms", INT, 30_000),
    Setting(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    Setting("server.max.startup.time.ms", LONG, LONG_MAX, minimum=0, inert=True, internal=True),
    Setting("socket.connection.setup.timeout.max.ms", LONG, 30_000, inert=True),
    Setting("socket.connection.setup.timeout.ms", LONG, 10_000),
    Setting("socket.listen.backlog.size", INT, 50, minimum=1),
    # Left to the system unless it is set: with this size a request of 1 MiB costs twice the time.
    Setting("socket.receive.buffer.bytes", INT, 102_400),
    Setting("socket.request.max.bytes", INT, 104_857_600, minimum=1),
    Setting("socket.send.buffer.bytes", INT, 102_400),
    Setting("telemetry.max.bytes", INT, 1_048_576, minimum=1),
    Setting(
        "unclean.leader.election.interval.ms", LONG, 300_000, minimum=1, inert=True, internal=True
    ),
    Setting("unstable.api.versions.enable", BOOLEAN, False, inert=True, internal=True),
    Setting("unstable.feature.versions.enable", BOOLEAN, False, inert=True, internal=True),
    # Of Apache Kafka 3.9, the last that kept its metadata there. TLS and access control towards
    # ZooKeeper are not supported.
    Setting("zookeeper.connect", STRING, None),
    Setting("zookeeper.connection.timeout.ms", INT, None),
    Setting("zookeeper.session.timeout.ms", INT, 18_000, minimum=1),
)
