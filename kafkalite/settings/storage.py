"""Settings of the broker for logs, and the defaults that topics inherit from it."""

from kafkalite.settings.config_def import ConfigType, Setting, Update

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
CLUSTER_WIDE = Update.CLUSTER_WIDE
PER_BROKER = Update.PER_BROKER
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308

STORAGE_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "compression.gzip.level",
        INT,
        -1,
        minimum=-1,
        maximum=9,
        update=CLUSTER_WIDE,
        form="gzip level",
    ),
    Setting("compression.lz4.level", INT, 9, minimum=1, maximum=17, update=CLUSTER_WIDE),
    Setting(
        "compression.type",
        STRING,
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        update=CLUSTER_WIDE,
    ),
    Setting("compression.zstd.level", INT, 3, minimum=-131_072, maximum=22, update=CLUSTER_WIDE),
    Setting("cordoned.log.dirs", LIST, (), update=PER_BROKER, inert=True),
    Setting("log.cleaner.backoff.ms", LONG, 15_000, minimum=0, update=CLUSTER_WIDE),
    Setting(
        "log.cleaner.dedupe.buffer.size", LONG, 134_217_728, minimum=1 << 20, update=CLUSTER_WIDE
    ),
    Setting("log.cleaner.delete.retention.ms", LONG, 86_400_000, minimum=0, update=CLUSTER_WIDE),
    Setting("log.cleaner.enable", BOOLEAN, True),
    Setting("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, update=CLUSTER_WIDE),
    Setting("log.cleaner.io.buffer.size", INT, 524_288, minimum=0, update=CLUSTER_WIDE, inert=True),
    Setting("log.cleaner.io.max.bytes.per.second", DOUBLE, DOUBLE_MAX, update=CLUSTER_WIDE),
    Setting("log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, minimum=1, update=CLUSTER_WIDE),
    Setting(
        "log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, minimum=0, maximum=1, update=CLUSTER_WIDE
    ),
    Setting("log.cleaner.min.compaction.lag.ms", LONG, 0, minimum=0, update=CLUSTER_WIDE),
    Setting("log.cleaner.threads", INT, 1, minimum=0, update=CLUSTER_WIDE, inert=True),
    Setting(
        "log.cleanup.policy", LIST, ("delete",), choices=("compact", "delete"), update=CLUSTER_WIDE
    ),
    Setting("log.dir", LIST, ("/tmp/kafka-logs",)),
    Setting("log.dir.failure.timeout.ms", LONG, 30_000, minimum=1, inert=True),
    Setting("log.dirs", LIST, None),
    Setting("log.flush.interval.messages", LONG, LONG_MAX, minimum=1, update=CLUSTER_WIDE),
    Setting("log.flush.interval.ms", LONG, None, update=CLUSTER_WIDE),
    Setting("log.flush.offset.checkpoint.interval.ms", INT, 60_000, minimum=0),
    Setting("log.flush.scheduler.interval.ms", LONG, LONG_MAX),
    Setting("log.flush.start.offset.checkpoint.interval.ms", INT, 60_000, minimum=0),
    Setting("log.index.interval.bytes", INT, 4_096, minimum=0, update=CLUSTER_WIDE),
    Setting("log.index.size.max.bytes", INT, 10_485_760, minimum=4, update=CLUSTER_WIDE),
    Setting("log.initial.task.delay.ms", LONG, 30_000, minimum=0, internal=True),
    Setting("log.local.retention.bytes", LONG, -2, minimum=-2, update=CLUSTER_WIDE, inert=True),
    Setting("log.local.retention.ms", LONG, -2, minimum=-2, update=CLUSTER_WIDE, inert=True),
    Setting("log.message.timestamp.after.max.ms", LONG, 3_600_000, minimum=0, update=CLUSTER_WIDE),
    Setting("log.message.timestamp.before.max.ms", LONG, LONG_MAX, minimum=0, update=CLUSTER_WIDE),
    Setting(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        update=CLUSTER_WIDE,
    ),
    Setting("log.preallocate", BOOLEAN, False, update=CLUSTER_WIDE, inert=True),
    Setting("log.retention.bytes", LONG, -1, update=CLUSTER_WIDE),
    Setting("log.retention.check.interval.ms", LONG, 300_000, minimum=1),
    Setting("log.retention.hours", INT, 168, form="age"),
    Setting("log.retention.minutes", INT, None, form="age"),
    Setting("log.retention.ms", LONG, None, update=CLUSTER_WIDE, form="age"),
    Setting("log.roll.hours", INT, 168, minimum=1),
    Setting("log.roll.jitter.hours", INT, 0, minimum=0),
    Setting("log.roll.jitter.ms", LONG, None, minimum=0, update=CLUSTER_WIDE),
    Setting("log.roll.ms", LONG, None, minimum=1, update=CLUSTER_WIDE),
    Setting("log.segment.bytes", INT, 1_073_741_824, minimum=1_048_576, update=CLUSTER_WIDE),
    Setting("log.segment.delete.delay.ms", LONG, 60_000, minimum=0, update=CLUSTER_WIDE),
    Setting("message.max.bytes", INT, 1_048_588, minimum=0, update=CLUSTER_WIDE),
    Setting("min.insync.replicas", INT, 1, minimum=1, update=CLUSTER_WIDE),
    Setting(
        "num.recovery.threads.per.data.dir", INT, 2, minimum=1, update=CLUSTER_WIDE, inert=True
    ),
    Setting("num.replica.alter.log.dirs.threads", INT, None, inert=True),
    Setting("offset.metadata.max.bytes", INT, 4_096),
    Setting("producer.id.expiration.check.interval.ms", INT, 600_000, minimum=1, internal=True),
    Setting("producer.id.expiration.ms", INT, 86_400_000, minimum=1, update=CLUSTER_WIDE),
    Setting("unclean.leader.election.enable", BOOLEAN, False, update=CLUSTER_WIDE),
)
