"""Faults in a run, and how often: chosen by the seed, after TigerBeetle's VOPR.

The fault envelope. Kafka promises that an acknowledged record survives `min.insync.replicas` - 1
losses of data, and documents that the last in-sync replica must not lose any: before KIP-966 what
it lost is gone, in Apache Kafka as here. So a crash that loses unsynced data only hits a broker
while, in every partition that it holds, another in-sync replica lives, is reached, is registered in
its present epoch (one whose restart the controller has not noticed yet is about to be put out of
the ISR, too) and has lost nothing since it joined, and no leader has asked to put replicas out of
the ISR; and until the controller has put the broker itself out of the ISR, nothing else happens to
those others. All other faults come at any time and in any combination.
"""

from dataclasses import dataclass, fields
from random import Random
from typing import Final


@dataclass(slots=True, frozen=True, kw_only=True)
class Faults:
    """Chances of each fault at each of its occasions, which come every `occasion_ms`.

    Attributes:
        crash: a broker's process ends; what it wrote is there when it is back.
        power_loss: a broker's machine ends; unsynced data are lost, the last write may be torn.
        partition: some hosts cannot send to some others, one way or both.
        slow_link: messages of one link take long.
        pause: a broker stands still, also longer than its session lives.
        session_loss: the metadata store forgets a broker that is well.
        controller_loss: the controller alone loses the store, and goes on as if it were controller.
        drop: a message, or the connection it is sent on, is lost (of each message).
        reorder: a message is overtaken (of each message; level 1 only, TCP keeps order).
        disk_failure: a broker's disk fails for a while (level 2).
        disk_full: a broker's disk is full for a while (level 2).
        shutdown: a broker is stopped as an operator would (level 2).
        takeover: a broker that is back replaces its old session, instead of waiting for its end
            (level 1; of each run).
    """

    crash: float = 0.0
    power_loss: float = 0.0
    partition: float = 0.0
    slow_link: float = 0.0
    pause: float = 0.0
    session_loss: float = 0.0
    controller_loss: float = 0.0
    drop: float = 0.0
    reorder: float = 0.0
    disk_failure: float = 0.0
    disk_full: float = 0.0
    shutdown: float = 0.0
    takeover: float = 0.5

    @classmethod
    def of(cls, random: Random) -> "Faults":
        """Draw the faults of one run: some kinds rare, some frequent, some absent.

        Runs in which everything happens hide what needs one thing to happen twice.
        """
        chances: dict[str, float] = {}
        for each in fields(cls):
            frequency = random.choice((0.0, 0.3, 1.0, 1.0, 2.0))
            chances[each.name] = USUAL[each.name] * frequency
        chances["takeover"] = USUAL["takeover"]
        return cls(**chances)


USUAL: Final = {
    "crash": 0.06,
    "power_loss": 0.06,
    "partition": 0.05,
    "slow_link": 0.05,
    "pause": 0.04,
    "session_loss": 0.03,
    "controller_loss": 0.03,
    "drop": 0.01,
    "reorder": 0.05,
    "disk_failure": 0.02,
    "disk_full": 0.02,
    "shutdown": 0.03,
    "takeover": 0.5,
}
"""Chosen so that a run of some seconds sees a handful of faults and still gets work done."""

NO_FAULTS: Final = Faults()
