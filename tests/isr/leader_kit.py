"""The core of a leader with three replicas."""

from kafkalite.isr.leader import Leader

LAG_MS = 1_000


def make_leader(**options):
    given = {
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader_epoch": 5,
        "partition_epoch": 7,
        "log_end_offset": 10,
        "high_watermark": 4,
        "min_insync_replicas": 1,
        "lag_ms_max": LAG_MS,
        "is_eligible": lambda broker, epoch: True,
        "now_ms": 0,
    }
    return Leader(1, **{**given, **options})


def fetch(leader, replica, offset, *, now_ms=0, epoch=-1, start=0):
    return leader.on_follower_fetch(
        replica, offset=offset, log_start_offset=start, broker_epoch=epoch, now_ms=now_ms
    )


def accept(leader, isr, *, partition_epoch=None):
    return leader.on_isr_accepted(
        leader_epoch=leader.leader_epoch,
        partition_epoch=partition_epoch or leader.partition_epoch + 1,
        isr=isr,
    )
