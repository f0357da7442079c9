"""How a test says which faults it wants, of one broker or of several.

    rule = broker.faults.on("Produce", topic="orders").error("NOT_ENOUGH_REPLICAS").times(3)
    broker.faults.on("EndTxn", transactional_id="tx-*").lose_reply().once()
    with broker.faults.on("Metadata").error("LEADER_NOT_AVAILABLE"):
        ...
    rule.wait(hits=3)

Rules are looked at in the order in which they were made. `error` comes before the request is
applied: nothing has happened. `error(..., applied=True)` and `lose_reply` come after: it has.
"""

import errno
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from kafkalite.faults.disk import DiskFault, full_disk
from kafkalite.faults.specification import ACTION_NAMES, CHAOS_PROBABILITY, FaultRuleError

if TYPE_CHECKING:
    from types import TracebackType

DEFAULT_TIMEOUT_S: Final = 10.0

GROUP_APIS: Final = (
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "ConsumerGroupHeartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
)
TRANSACTION_APIS: Final = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "TxnOffsetCommit",
)
HEARTBEATS: Final = (
    "Heartbeat",
    "ConsumerGroupHeartbeat",
    "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat",
)


class FaultNeverFired(UserWarning):
    """A fault rule was removed that never fired: the test tested nothing with it."""


class AddedRule(Protocol):
    """A rule that acts, in one broker or in several."""

    @property
    def rule_id(self) -> str:
        """Its name."""
        ...

    @property
    def description(self) -> str:
        """The rule in one line."""
        ...

    @property
    def hits(self) -> int:
        """How often it has fired."""
        ...

    @property
    def matched(self) -> int:
        """How many partitions or requests it matched while it could fire."""
        ...


class AddedDiskFault(Protocol):
    """A fault of a disk, or of the disks of several brokers."""

    @property
    def hits(self) -> int:
        """How often it has happened."""
        ...


class FaultRule:
    """One rule; it acts from the moment in which its action is named, until it is removed.

    As a context manager it is removed at the end of the block.
    """

    def __init__(
        self, faults: "FaultMaker", said: Mapping[str, Any], *, added: AddedRule | None = None
    ) -> None:
        self._faults = faults
        self._said = dict(said)
        self._rule = added

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<fault {self.id}: {self.description}; {self.hits} hits>"

    # --- What it does ----------------------------------------------------------------------------

    def error(
        self,
        code: str | int,
        message: str | None = None,
        *,
        applied: bool = False,
        unchecked: bool = False,
    ) -> Self:
        """Answer an error, by Kafka's name or number, in the field that the API has for it.

        Args:
            code: "NOT_ENOUGH_REPLICAS" or 19.
            message: where the API has a field for it.
            applied: have the request applied first; clients that try again do it twice.
            unchecked: allow an error that Kafka never gives for this API.
        """
        return self._act(error=code, message=message, applied=applied, unchecked=unchecked)

    def lose_reply(self, *, reset: bool = False) -> Self:
        """Apply the request, and close the connection instead of answering."""
        return self._act(lose_reply=True, reset=reset)

    def disconnect(self, *, reset: bool = False) -> Self:
        """Close the connection; the request is not applied."""
        return self._act(disconnect=True, reset=reset)

    def blackhole(self, *, applied: bool = False) -> Self:
        """Never answer, nor any later request of the connection."""
        return self._act(blackhole=True, applied=applied)

    def ignore(self) -> Self:
        """Never answer, and serve what comes next: most clients rely on the order of answers."""
        return self._act(ignore=True)

    def delay(self, seconds: float, *, applied: bool = True) -> Self:
        """Answer so much later; with `applied=False` the request is applied later, too."""
        return self._act(delay_s=seconds, applied=applied)

    def throttle(self, ms: int) -> Self:
        """Answer with this throttle time, and let the connection rest for so long."""
        return self._act(throttle_ms=ms)

    def truncate(self, count_bytes: int, *, reset: bool = False) -> Self:
        """Send the first bytes of the answer alone, then close."""
        return self._act(truncate_bytes=count_bytes, reset=reset)

    def slow(self, bytes_per_s: int) -> Self:
        """Send the answer at this speed."""
        return self._act(slow_bytes_per_s=bytes_per_s)

    def slice(self, count_bytes: int, *, pause_s: float = 0.1) -> Self:
        """Send the answer in pieces of so many bytes, with pauses."""
        return self._act(slice_bytes=count_bytes, pause_s=pause_s)

    def corrupt(self, how: str = "crc") -> Self:
        """Answer a Fetch with damaged records ("crc", "batch", "magic", "length")."""
        return self._act(corrupt=how)

    def wrong_leader(self, broker_id: int = 2_147_483_646) -> Self:
        """Refuse a Produce or Fetch, and name a broker that is not the leader (KIP-951)."""
        return self._act(wrong_leader=broker_id)

    def stale_metadata(self) -> Self:
        """Answer Metadata and DescribeCluster with what there is now, whatever changes later."""
        return self._act(stale_metadata=True)

    def evict_member(self) -> Self:
        """Take the member that asks out of its group first; it meets that it is none."""
        return self._act(evict_member=True)

    def rebalance(self) -> Self:
        """Have the group of the member that asks begin a new round first."""
        return self._act(rebalance=True)

    def fence_producer(self) -> Self:
        """Give the transactional id of the producer that asks to another one first."""
        return self._act(fence_producer=True)

    def move_coordinator(self) -> Self:
        """Have the coordinator load its log anew, and answer NOT_COORDINATOR."""
        return self._act(move_coordinator=True)

    def transform(self, function: Callable[[Any, Any], Any]) -> Self:
        """Answer what a function makes of request and response; called in the broker's thread."""
        return self._act(transform=function)

    def sequence(self, *actions: str | int | Mapping[str, Any]) -> Self:
        """Do one after the other: "ok", an error, or an action such as {"delay_s": 0.2}."""
        return self._act(sequence=[*actions])

    def schedule(self, *actions: str | int | Mapping[str, Any], seed: int = 0) -> Self:
        """Draw one of these each time: "ok", an error, or {"delay_s": 0.2, "weight": 3}."""
        return self._act(schedule=[*actions], seed=seed)

    # --- When ------------------------------------------------------------------------------------

    def once(self) -> Self:
        """Fire at the first match alone."""
        return self._fire(once=True)

    def times(self, count: int) -> Self:
        """Fire so often."""
        return self._fire(times=count)

    def on_call(self, number: int) -> Self:
        """Fire at this match alone; the first is 1."""
        return self._fire(on_call=number)

    def after(self, count: int) -> Self:
        """Let so many matches through first."""
        return self._fire(after=count)

    def every(self, count: int) -> Self:
        """Fire at each so many-th match, beginning with the first."""
        return self._fire(every=count)

    def always(self) -> Self:
        """Fire at every match, which a rule does if nothing else is said."""
        return self._fire(always=True)

    def with_probability(self, probability: float, *, seed: int = 0) -> Self:
        """Fire at random, by a generator of the rule's own."""
        return self._fire(probability=probability, seed=seed)

    def for_seconds(self, seconds: float) -> Self:
        """Fire for so long, by the broker's clock."""
        return self._fire(for_s=seconds)

    # --- What became of it -----------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Its name: "f1"."""
        return self._added.rule_id

    @property
    def hits(self) -> int:
        """How often it has fired."""
        return self._added.hits

    @property
    def matched(self) -> int:
        """How many partitions or requests it matched while it could fire."""
        return self._added.matched

    @property
    def description(self) -> str:
        """The rule in one line."""
        return self._added.description

    def wait(self, hits: int = 1, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Return when it has fired so often.

        Raises:
            TimeoutError: it has not, after `timeout_s` of real time.
        """
        rule = self._added
        if not self._faults.wait_hits(rule, hits, timeout_s):
            raise TimeoutError(
                f"fault {rule.rule_id} ({rule.description}) fired {rule.hits} of {hits} times "
                f"in {timeout_s:g} s; {rule.matched} matched"
            )

    def remove(self) -> None:
        """Let it act no more."""
        if self._rule is not None:
            self._faults.remove(self._rule)

    @property
    def _added(self) -> AddedRule:
        if self._rule is None:
            raise RuntimeError("this fault has no action yet, such as .error(...)")
        return self._rule

    def _act(self, **action: Any) -> Self:
        if self._rule is not None:
            raise FaultRuleError("this fault has an action already; make another with on()")
        self._said |= {name: value for name, value in action.items() if value is not None}
        self._rule = self._faults.add(self._said)
        return self

    def _fire(self, **trigger: Any) -> Self:
        self._said |= trigger
        if self._rule is not None:
            # The action stands; the counts so far hold for the new trigger, too.
            self._faults.change_trigger(self._rule, self._said)
        return self


class FaultMaker(ABC):
    """Makes the fault rules of one broker or of several; from any thread."""

    def on(self, *apis: str, **match: Any) -> FaultRule:
        """Begin a rule for requests of these APIs, or of all.

        Args:
            apis: as Kafka's documentation writes them ("Produce", "EndTxn").
            match: `client_id`, `user`, `listener`, `peer`, `topic`, `group`, `transactional_id`
                (globs), `partition`, `version`, `min_bytes`, records' `key`, `value` (contained),
                `header` (name), and `where`, a function of the request message.

        Raises:
            FaultRuleError: at the action: a name or value that does not fit.
        """
        if apis:
            match["api"] = [*apis]
        wrong = [name for name in match if name in ACTION_NAMES]
        if wrong:
            raise FaultRuleError(f"{wrong[0]} is an action: on(...).{wrong[0]}(...)")
        return FaultRule(self, match)

    def clear(self, *, strict: bool = False) -> None:
        """Remove all rules and faults of the disk.

        A rule that never fired is warned of with `FaultNeverFired`: a misspelt topic makes a test
        green that tests nothing.

        Args:
            strict: raise it instead.
        """
        removed = self._clear()
        for what, hits in removed:
            if hits:
                continue
            if strict:
                raise FaultNeverFired(f"fault never fired: {what}")
            warnings.warn(f"fault never fired: {what}", FaultNeverFired, stacklevel=2)

    # --- Shorter ways ----------------------------------------------------------------------------

    def move_coordinator(
        self, group: str | None = None, *, transactional_id: str | None = None, times: int = 1
    ) -> list[FaultRule]:
        """Have a coordinator load its log anew, and say so often that there is none to be found.

        It is that of a group or a transactional id; what it knows and the log does not, such as a
        rebalance under way, is forgotten, as when another broker takes over.

        Raises:
            FaultRuleError: neither or both are given.
        """
        if (group is None) == (transactional_id is None):
            raise FaultRuleError("a coordinator is that of a group or of a transactional id")
        apis = TRANSACTION_APIS if group is None else GROUP_APIS
        said = {"group": group, "transactional_id": transactional_id}
        return [
            self.on(*apis, **said).move_coordinator().once(),
            self.on("FindCoordinator", **said).error("COORDINATOR_NOT_AVAILABLE").times(times),
        ]

    def evict_member(self, group: str, *, client_id: str | None = None) -> FaultRule:
        """Take the next member that has a heartbeat out of its group, which it is told then."""
        said = {} if client_id is None else {"client_id": client_id}
        return self.on(*HEARTBEATS, group=group, **said).evict_member().once()

    def rebalance(self, group: str) -> FaultRule:
        """Have a group begin a new round, at the next heartbeat of any of its members."""
        apis = ("Heartbeat", "ConsumerGroupHeartbeat")
        return self.on(*apis, group=group).rebalance().once()

    def fence_producer(self, transactional_id: str) -> FaultRule:
        """Give a transactional id to another producer, at the next request of this one."""
        apis = ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit", "Produce")
        return self.on(*apis, transactional_id=transactional_id).fence_producer().once()

    def shrink_isr(self, topic: str, partition: int | None = None) -> FaultRule:
        """Refuse writes with acks=all as if too few replicas were in sync."""
        return self.on(
            "Produce", topic=topic, partition=partition, where=lambda request: request.acks == -1
        ).error("NOT_ENOUGH_REPLICAS")

    def chaos(
        self, seed: int = 0, *, probability: float = CHAOS_PROBABILITY, **match: Any
    ) -> list[FaultRule]:
        """Have a mild schedule of random faults that every client must bear, by a seed.

        Raises:
            FaultRuleError: `match` is none of `client_id`, `user`, `listener`, `peer`.
        """
        said = {**match, "seed": seed, "probability": probability}
        return [FaultRule(self, {}, added=rule) for rule in self.add_chaos(said)]

    # --- The disk --------------------------------------------------------------------------------

    def disk_full(self, topic: str | None = None, *, times: int | None = None) -> AddedDiskFault:
        """Refuse writes to the logs of a topic, or all, as a disk without room does (ENOSPC)."""
        return self.add_disk(full_disk(topic, times=times))

    def disk_error(
        self, op: str = "write", *, topic: str | None = None, times: int | None = None
    ) -> AddedDiskFault:
        """Fail operations on the logs of a topic, or all: "write", "fsync" or "read" (EIO)."""
        return self.add_disk(DiskFault(operation=op, topic=topic, errno=errno.EIO, times=times))

    def slow_disk(
        self,
        seconds: float,
        op: str = "write",
        *,
        topic: str | None = None,
        times: int | None = None,
    ) -> AddedDiskFault:
        """Let operations take so long; writes hold up the whole broker, as they do in fact."""
        return self.add_disk(DiskFault(operation=op, topic=topic, delay_s=seconds, times=times))

    # --- Where they act --------------------------------------------------------------------------

    @abstractmethod
    def add(self, said: Mapping[str, Any]) -> AddedRule:
        """Add a rule said by names and values (`kafkalite.faults.specification`).

        Raises:
            FaultRuleError: it does not fit.
        """

    @abstractmethod
    def add_chaos(self, said: Mapping[str, Any]) -> Sequence[AddedRule]:
        """Add the rules of `kafkalite.faults.specification.chaos`."""

    @abstractmethod
    def add_disk(self, fault: DiskFault) -> AddedDiskFault:
        """Let the disk fail."""

    @abstractmethod
    def change_trigger(self, rule: Any, said: Mapping[str, Any]) -> None:
        """Let a rule fire at other matches from now on."""

    @abstractmethod
    def remove(self, rule: Any) -> None:
        """Let a rule act no more."""

    @abstractmethod
    def wait_hits(self, rule: Any, hits: int, timeout_s: float) -> bool:
        """Return whether a rule has fired so often within real time."""

    @abstractmethod
    def rules(self) -> Sequence[AddedRule]:
        """Return the rules there are, in their order."""

    @abstractmethod
    def _clear(self) -> list[tuple[str, int]]:
        """Remove all; return what each did, and how often it fired."""

    def __iter__(self) -> Iterator[AddedRule]:
        return iter(self.rules())
