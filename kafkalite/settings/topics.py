"""Settings of topics: what a topic may override (rule 223)."""

from kafkalite.settings.config_def import ConfigType, Setting

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
LONG_MAX = 2**63 - 1

TOPIC_SETTINGS: tuple[Setting, ...] = (
    Setting("cleanup.policy", LIST, ("delete",), choices=("compact", "delete")),
    Setting("compression.gzip.level", INT, -1, minimum=-1, maximum=9, form="gzip level"),
    Setting("compression.lz4.level", INT, 9, minimum=1, maximum=17),
    Setting(
        "compression.type",
        STRING,
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    Setting("compression.zstd.level", INT, 3, minimum=-131_072, maximum=22),
    Setting("delete.retention.ms", LONG, 86_400_000, minimum=0),
    Setting("file.delete.delay.ms", LONG, 60_000, minimum=0),
    Setting("flush.messages", LONG, LONG_MAX, minimum=1),
    Setting("flush.ms", LONG, LONG_MAX, minimum=0),
    Setting("follower.replication.throttled.replicas", LIST, (), form="replicas"),
    Setting("index.interval.bytes", INT, 4_096, minimum=0),
    Setting("internal.segment.bytes", INT, None, internal=True),
    Setting("leader.replication.throttled.replicas", LIST, (), form="replicas"),
    Setting("local.retention.bytes", LONG, -2, minimum=-2, inert=True),
    Setting("local.retention.ms", LONG, -2, minimum=-2, inert=True),
    Setting("max.compaction.lag.ms", LONG, LONG_MAX, minimum=1),
    Setting("max.message.bytes", INT, 1_048_588, minimum=0),
    Setting("message.timestamp.after.max.ms", LONG, 3_600_000, minimum=0),
    Setting("message.timestamp.before.max.ms", LONG, LONG_MAX, minimum=0),
    Setting(
        "message.timestamp.type", STRING, "CreateTime", choices=("CreateTime", "LogAppendTime")
    ),
    Setting("min.cleanable.dirty.ratio", DOUBLE, 0.5, minimum=0, maximum=1),
    Setting("min.compaction.lag.ms", LONG, 0, minimum=0),
    Setting("min.insync.replicas", INT, 1, minimum=1),
    Setting("preallocate", BOOLEAN, False, inert=True),
    Setting("remote.log.copy.disable", BOOLEAN, False, inert=True),
    Setting("remote.log.delete.on.disable", BOOLEAN, False, inert=True),
    Setting("remote.storage.enable", BOOLEAN, False, inert=True),
    Setting("retention.bytes", LONG, -1),
    Setting("retention.ms", LONG, 604_800_000, minimum=-1),
    Setting("segment.bytes", INT, 1_073_741_824, minimum=1_048_576),
    Setting("segment.index.bytes", INT, 10_485_760, minimum=4),
    Setting("segment.jitter.ms", LONG, 0, minimum=0),
    Setting("segment.ms", LONG, 604_800_000, minimum=1),
    Setting("unclean.leader.election.enable", BOOLEAN, False),
)

HOUR_MS = 3_600_000
MINUTE_MS = 60_000

TOPIC_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
"""Broker settings that a topic setting takes its value from, the first that is set, and the
factor that turns one into the other's unit (rule 225)."""
