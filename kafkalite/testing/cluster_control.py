"""Faults and clocks of a cluster under test: of all its brokers in one call, or of single ones.

rule = cluster.faults.on("Produce", topic="orders").error("NOT_ENOUGH_REPLICAS").times(2)
cluster.faults(3).on("Fetch").delay(0.5)
rule.wait(hits=4)                   # over all brokers together
cluster.clock.advance(3600)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kafkalite.faults.disk import DiskFault
from kafkalite.faults.remote import ClusterControl, ControlError, summed
from kafkalite.faults.specification import FaultRuleError, chaos, parse
from kafkalite.testing.fault_rules import FaultMaker

REFUSED: Final = 422
TIMED_OUT: Final = 408
ERRNO_NAMES: Final = {28: "ENOSPC", 5: "EIO"}


class RemoteRule:
    """A rule that acts in several brokers; each of them counts for itself.

    A broker that is started anew gets it again, and counts from nothing.
    """

    def __init__(self, control: ClusterControl, said: Mapping[str, Any], added: Any) -> None:
        self._control = control
        self.said = dict(said)
        self.rule_id: str = added["id"]
        self.description: str = added["rule"]

    @property
    def hits(self) -> int:
        """How often it has fired, on all brokers together."""
        return int(self._control.show(self.rule_id)["hits"])

    @property
    def matched(self) -> int:
        """How many partitions or requests it matched while it could fire."""
        return int(self._control.show(self.rule_id)["matched"])

    def on_restart(self, number: int) -> None:
        """Act in a broker again that was started anew."""
        parts = dict(part.split(".") for part in self.rule_id.split("+"))
        if str(number) in parts:
            again = self._control.add(self.said, [number])
            parts[str(number)] = again["id"].partition(".")[2]
            self.rule_id = "+".join(f"{broker}.{own}" for broker, own in parts.items())


class RemoteDiskFault:
    """A fault of the disks of several brokers."""

    def __init__(self, control: ClusterControl, ids: Mapping[int, str]) -> None:
        self._control = control
        self._ids = ids

    @property
    def hits(self) -> int:
        """How often it has happened, on all brokers together."""
        found = self._control.each(self._ids, "GET", "/faults", None)
        return sum(
            fault["hits"]
            for number, answer in found.items()
            for fault in answer["disk_faults"]
            if fault["id"] == self._ids[number]
        )


class ClusterFaults(FaultMaker):
    """The fault rules of a cluster; called with ids of brokers, of these alone.

    Args:
        control: of the brokers.
        brokers: their ids; all if None.
    """

    def __init__(self, control: ClusterControl, brokers: Sequence[int] | None = None) -> None:
        self._control = control
        self._brokers = brokers
        self._rules: list[RemoteRule] = []
        self._disk_faults: list[RemoteDiskFault] = []

    def __call__(self, *brokers: int) -> "ClusterFaults":
        """Return the same for some brokers; `clear` of the whole removes their rules, too."""
        some = ClusterFaults(self._control, brokers)
        some._rules, some._disk_faults = self._rules, self._disk_faults
        return some

    def rules(self) -> list[RemoteRule]:
        """Return the rules there are, in their order."""
        return [*self._rules]

    def add(self, said: Mapping[str, Any]) -> RemoteRule:
        """Add a rule said by names and values (`kafkalite.faults.specification`).

        Raises:
            FaultRuleError: it does not fit, or is a function, which only `Broker` can have.
            ControlError: a broker cannot be asked.
        """
        parse(said)
        for name in ("where", "transform"):
            if said.get(name) is not None:
                raise FaultRuleError(f"{name} is a function, which no other process can call")
        plain = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in said.items()
            if value is not None
        }
        rule = RemoteRule(self._control, plain, self._control.add(plain, self._brokers))
        self._rules.append(rule)
        return rule

    def add_chaos(self, said: Mapping[str, Any]) -> list[RemoteRule]:
        """Add a mild schedule of random faults to each broker."""
        chaos(said)
        found = self._control.each(self._brokers, "POST", "/chaos", dict(said))
        added = []
        for each in zip(*(answer["faults"] for answer in found.values()), strict=True):
            rule = RemoteRule(self._control, said, summed(dict(zip(found, each, strict=True))))
            self._rules.append(rule)
            added.append(rule)
        return added

    def add_disk(self, fault: DiskFault) -> RemoteDiskFault:
        """Let the disks fail."""
        said: dict[str, Any] = {"op": fault.operation, "topic": fault.topic, "times": fault.times}
        said |= {"partition": fault.partition, "delay_s": fault.delay_s}
        said["error"] = ERRNO_NAMES.get(fault.errno)
        found = self._control.each(self._brokers, "POST", "/disk-faults", said)
        added = RemoteDiskFault(self._control, {n: each["id"] for n, each in found.items()})
        self._disk_faults.append(added)
        return added

    def change_trigger(self, rule: RemoteRule, said: Mapping[str, Any]) -> None:
        """Let a rule fire at other matches from now on."""
        parse(said)
        rule.said = {name: value for name, value in said.items() if value is not None}
        self._control.change_trigger(rule.rule_id, rule.said)

    def remove(self, rule: RemoteRule) -> None:
        """Let a rule act no more."""
        if rule in self._rules:
            self._rules.remove(rule)
            self._control.remove(rule.rule_id)

    def wait_hits(self, rule: RemoteRule, hits: int, timeout_s: float) -> bool:
        """Return whether a rule has fired so often, on all brokers together."""
        try:
            self._control.wait(rule.rule_id, hits, timeout_s)
        except ControlError as error:
            if error.status == TIMED_OUT:
                return False
            raise
        return True

    def on_restart(self, number: int) -> None:
        """Have the rules act in a broker again that was started anew."""
        for rule in self._rules:
            rule.on_restart(number)

    def _clear(self) -> list[tuple[str, int]]:
        removed = [(r.description, r.hits) for r in self._rules if "probability" not in r.said]
        removed += [("disk", fault.hits) for fault in self._disk_faults]
        self._rules.clear()
        self._disk_faults.clear()
        self._control.all("DELETE", "/faults")
        return removed


class ClusterClock:
    """The clocks of all brokers of a cluster, turned together (`testing.clock.BrokerClock`).

    ZooKeeper's own does not move, nor who is in sync: both are about connections.
    """

    def __init__(self, control: ClusterControl) -> None:
        self._control = control

    def advance(self, seconds: float | timedelta) -> None:
        """Let so much time pass on all brokers; return when what was due in it has been done.

        Raises:
            ValueError: the time is negative.
        """
        step_s = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
        self._change({"advance_s": step_s})

    def freeze(self) -> None:
        """Stand still until `resume`: clients are served, and nothing expires or times out."""
        self._change({"freeze": True})

    def resume(self) -> None:
        """Go on after `freeze`."""
        self._change({"resume": True})

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stand still inside of a `with` block."""
        self.freeze()
        try:
            yield
        finally:
            self.resume()

    def set(self, at: datetime) -> None:
        """Set the wall clocks, which timestamps and retention go by; no deadline moves."""
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        self._change({"set": at.isoformat()})

    def now(self) -> datetime:
        """Return the wall clock of the broker that is ahead of the others."""
        return datetime.fromtimestamp(self.now_ms() / 1_000, UTC)

    def now_ms(self) -> int:
        """Return the same in milliseconds since the Unix epoch."""
        return max(int(each["now_ms"]) for each in self._told())

    @property
    def rate(self) -> float:
        """How many seconds pass in one second; 0 freezes."""
        return max(float(each["rate"]) for each in self._told())

    @rate.setter
    def rate(self, rate: float) -> None:
        self._change({"rate": rate})

    @property
    def ahead_s(self) -> float:
        """How many seconds the brokers are ahead of the machine."""
        return max(float(each["ahead_s"]) for each in self._told())

    def reset(self) -> None:
        """Let the wall clocks be the machine's again, at its own rate."""
        self._change({"reset": True})

    def _told(self) -> Sequence[Mapping[str, Any]]:
        return [*self._control.all("GET", "/clock").values()]

    def _change(self, said: Mapping[str, Any]) -> None:
        try:
            self._control.all("POST", "/clock", said)
        except ControlError as error:
            if error.status == REFUSED:
                raise ValueError(str(error)) from None
            raise


def cluster_control(urls: Callable[[], Mapping[int, str]]) -> tuple[ClusterFaults, ClusterClock]:
    """Return faults and clock of the brokers whose HTTP addresses `urls` gives."""
    control = ClusterControl(urls)
    return ClusterFaults(control), ClusterClock(control)
