"""Faults of a broker in the test's process (`fault_rules` says how they are said)."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from kafkalite.faults.disk import DiskFault, FaultyDisk
from kafkalite.faults.injector import Injector
from kafkalite.faults.rules import Rule
from kafkalite.faults.specification import Specification, chaos, parse
from kafkalite.testing.fault_rules import FaultMaker
from kafkalite.testing.fault_rules import FaultNeverFired as FaultNeverFired
from kafkalite.testing.fault_rules import FaultRule as FaultRule

if TYPE_CHECKING:
    from kafkalite.testing.broker import Broker

GLOB = frozenset("*?[")


class Faults(FaultMaker):
    """The fault rules of one broker in this process; from any thread."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def rules(self) -> list[Rule]:
        """Return the rules there are, in their order."""
        return self._broker.call_in_broker(lambda: [*self._injector.rules])

    def add(self, said: Mapping[str, Any]) -> Rule:
        """Add a rule said by names and values (`kafkalite.faults.specification`).

        Raises:
            FaultRuleError: it does not fit.
        """
        return self._add(parse(said))

    def add_chaos(self, said: Mapping[str, Any]) -> list[Rule]:
        """Add a mild schedule of random faults."""
        return [self._add(each) for each in chaos(said)]

    def add_disk(self, fault: DiskFault) -> DiskFault:
        """Let the disk fail."""
        disk: FaultyDisk = self._broker.disk

        def add() -> DiskFault:
            disk.faults = (*disk.faults, fault)
            return fault

        return self._broker.call_in_broker(add)

    def change_trigger(self, rule: Rule, said: Mapping[str, Any]) -> None:
        """Let a rule fire at other matches from now on."""
        specification = parse(said)
        self._broker.call_in_broker(lambda: self._injector.change_trigger(rule, specification))

    def remove(self, rule: Rule) -> None:
        """Let a rule act no more."""
        self._broker.call_in_broker(lambda: self._injector.remove(rule.rule_id))

    def wait_hits(self, rule: Rule, hits: int, timeout_s: float) -> bool:
        """Return whether a rule has fired so often within real time."""
        self._broker.run_in_broker(
            lambda: self._injector.wait_hits(rule, hits), timeout_s=timeout_s, default=None
        )
        return rule.hits >= hits

    @property
    def _injector(self) -> Injector:
        return self._broker.server.control.injector

    def _add(self, specification: Specification) -> Rule:
        return self._broker.call_in_broker(lambda: self._injector.add(specification))

    def _clear(self) -> list[tuple[str, int]]:
        def clear() -> list[tuple[str, int]]:
            disk: FaultyDisk = self._broker.disk
            topics = [*self._broker.server.services.metadata.image.topics]
            removed = [
                (rule.description + _hint(rule, topics), rule.hits)
                for rule in self._injector.clear()
                if rule.trigger.probability == 1  # chance need not strike
            ]
            removed += [(f"disk {fault.operation}", fault.hits) for fault in disk.faults]
            disk.faults = ()
            return removed

        return self._broker.call_in_broker(clear)


def _hint(rule: Rule, topics: list[str]) -> str:
    """Return why a rule may not have fired, if that can be told."""
    if rule.matched:
        return f" ({rule.matched} matched)"
    topic = rule.match.topic
    if topic is None or topic in topics or GLOB & set(topic):
        return ""
    near = get_close_matches(topic, topics, n=1)
    return f" (there is no topic {topic!r}" + (f", but {near[0]!r})" if near else ")")
