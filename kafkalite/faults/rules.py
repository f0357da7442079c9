"""Fault rules: which requests they match, when they fire, and what is to be done then.

A rule is a `Match`, a `Trigger` and an `Action`. Rules are looked at in the order in which they
were added. The first that fires for a unit (a partition that a request names, or the request
itself) decides about it; delays add up, and the search goes on after them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode

RULES_MAX: Final = 1_000
"""Rules of one broker at a time."""


class Unit(NamedTuple):
    """One partition that a request names; partition -1 stands for a topic as a whole."""

    topic: str
    partition: int


class RecordFacts(NamedTuple):
    """Facts about one record that rules are matched with."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


@dataclass(slots=True, frozen=True, kw_only=True)
class RequestFacts:
    """Facts about one request that rules are matched with.

    Attributes:
        size_bytes: of its frame.
        is_replica: another broker asks.
        units: partitions that it names, in its order.
        records: decodes the records that it holds for a unit; called only if a rule wants that.
        message: the request itself, for a rule's own condition.
    """

    api: ApiKey
    version: int = 0
    client_id: str = ""
    user: str = "ANONYMOUS"
    listener: str = ""
    peer: str = ""
    size_bytes: int = 0
    is_replica: bool = False
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    units: tuple[Unit, ...] = ()
    records: Callable[[Unit], Iterable[RecordFacts]] = lambda _: ()
    message: object = None


@dataclass(slots=True, frozen=True, kw_only=True)
class Match:
    """Which requests a rule is about: all that is given must hold.

    Texts but `listener` are globs, as "orders-*". A rule with `topic` or `partition` concerns those
    partitions of a request alone; others are served as ever. Requests of other brokers are left
    alone unless `replica` is true.
    """

    apis: frozenset[ApiKey] | None = None
    client_id: str | None = None
    user: str | None = None
    listener: str | None = None
    peer: str | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    version: int | None = None
    min_bytes: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    header: str | None = None
    replica: bool = False
    where: Callable[[object], bool] | None = None
    """A condition on the request message; True if the rule is about it."""

    @property
    def is_about_partitions(self) -> bool:
        """Whether single partitions of a request are concerned."""
        return any(
            each is not None
            for each in (self.topic, self.partition, self.key, self.value, self.header)
        )

    def matches_request(self, facts: RequestFacts) -> bool:
        """Whether a request as a whole is such a one, its partitions aside."""
        return (
            (self.apis is None or facts.api in self.apis)
            and self.replica == facts.is_replica
            and (self.version is None or self.version == facts.version)
            and (self.min_bytes is None or facts.size_bytes >= self.min_bytes)
            and (self.listener is None or self.listener == facts.listener)
            and _fits(self.client_id, (facts.client_id,))
            and _fits(self.user, (facts.user,))
            and _fits(self.peer, (facts.peer,))
            and _fits(self.group, facts.groups)
            and _fits(self.transactional_id, facts.transactional_ids)
            and (self.where is None or self.where(facts.message))
        )

    def matches_unit(self, unit: Unit, facts: RequestFacts) -> bool:
        """Whether one partition of a request that matches is concerned."""
        if not _fits(self.topic, (unit.topic,)):
            return False
        if self.partition is not None and unit.partition not in (self.partition, -1):
            return False
        if self.key is None and self.value is None and self.header is None:
            return True
        return any(self._matches_record(record) for record in facts.records(unit))

    def _matches_record(self, record: RecordFacts) -> bool:
        return (
            (self.key is None or self.key == record.key)
            and (self.value is None or (record.value is not None and self.value in record.value))
            and (self.header is None or any(name == self.header for name, _ in record.headers))
        )


@dataclass(slots=True, frozen=True, kw_only=True)
class Trigger:
    """Which of the matches a rule fires at; all that is given must hold.

    Attributes:
        skip: matches that are let through first.
        every: fires at each so many-th match after those.
        times: fires so often, then never again; None for ever.
        probability: of each match, by a generator of the rule's own.
        seed: of that generator.
        for_ms: how long after it was added; None for ever.
    """

    skip: int = 0
    every: int = 1
    times: int | None = None
    probability: float = 1.0
    seed: int = 0
    for_ms: int | None = None


class Kind(Enum):
    """Kind of action of a rule."""

    ERROR = "error"
    """Answers an error code."""
    LOSE_REPLY = "lose_reply"
    """Applies the request, and closes the connection instead of answering."""
    DISCONNECT = "disconnect"
    """Closes the connection; the request is not applied."""
    BLACKHOLE = "blackhole"
    """Never answers, nor any later request of the connection."""
    IGNORE = "ignore"
    """Never answers; later requests of the connection are served."""
    DELAY = "delay"
    """Answers late; with `applied` false the request is applied late, too."""
    THROTTLE = "throttle"
    """Answers with a throttle time, and rests the connection for so long."""
    TRUNCATE = "truncate"
    """Sends the first bytes of the answer, and closes."""
    SLICE = "slice"
    """Sends the answer in pieces, with pauses."""
    CORRUPT = "corrupt"
    """Answers a Fetch with a damaged copy of the records; the log is intact."""
    STALE_METADATA = "stale_metadata"
    """Answers from the metadata there were when the rule was added."""
    EVICT_MEMBER = "evict_member"
    """Takes the member that asks out of its group, before the request is applied."""
    REBALANCE = "rebalance"
    """Has the group that is asked about begin a new round, before the request is applied."""
    FENCE_PRODUCER = "fence_producer"
    """Gives the transactional id to another producer, before the request is applied."""
    MOVE_COORDINATOR = "move_coordinator"
    """Has the coordinator load its log anew, and answers NOT_COORDINATOR."""
    TRANSFORM = "transform"
    """Answers what a function makes of the response."""
    PASS = "pass"
    """Does nothing: a place in a sequence."""


OF_GROUPS: Final = frozenset({Kind.EVICT_MEMBER, Kind.REBALANCE})
OF_STATE: Final = OF_GROUPS | {Kind.FENCE_PRODUCER, Kind.MOVE_COORDINATOR}
"""What changes the broker's state as such an event does, and lets the request meet it."""

CORRUPTIONS: Final = ("crc", "batch", "magic", "length")


@dataclass(slots=True, frozen=True, kw_only=True)
class Action:
    """Action taken when a rule fires.

    Attributes:
        code: of ERROR.
        message: of ERROR, where the API has a field for it.
        applied: the request is applied first: an error then is no promise that nothing happened.
        leader: broker id that ERROR names as the leader (KIP-951).
        reset: the connection ends with a TCP reset instead of a FIN.
        seconds: of DELAY; pause between the pieces of SLICE.
        throttle_ms: of THROTTLE.
        count_bytes: of TRUNCATE and of each piece of SLICE.
        corruption: of CORRUPT: one of `CORRUPTIONS`.
        transform: of TRANSFORM; gets request and response, returns a response.
        weight: in a schedule, how often it is drawn beside others.
    """

    kind: Kind
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    applied: bool = False
    leader: int | None = None
    reset: bool = False
    seconds: float = 0.0
    throttle_ms: int = 0
    count_bytes: int = 0
    corruption: str = "crc"
    transform: Callable[[object, object], object] | None = None
    weight: float = 1.0

    def __str__(self) -> str:
        if self.kind is Kind.ERROR:
            return self.code.name + (" although it is applied" if self.applied else "")
        if self.kind in (Kind.DELAY, Kind.SLICE):
            return f"{self.kind.value} {self.seconds:g} s"
        return str(self.kind.value)


class Order(Enum):
    """Which of a rule's actions comes when it fires."""

    SAME = "same"
    """There is one."""
    SEQUENCE = "sequence"
    """One after the other; after the last the rule is spent."""
    SCHEDULE = "schedule"
    """Drawn at random by their weights, each time anew."""


@dataclass(slots=True, kw_only=True, eq=False)
class Rule:
    """One rule, with what became of it.

    Attributes:
        rule_id: names it ("f1").
        actions: one, or several: see `order`.
        order: in which several come.
        added_ms: monotonic time.
        draw: gives random numbers from 0 to 1, by the trigger's seed.
        matched: units that it was asked about and matched.
        hits: times that it fired.
    """

    rule_id: str
    match: Match
    trigger: Trigger
    actions: tuple[Action, ...]
    order: Order = Order.SAME
    description: str = ""
    added_ms: int = 0
    draw: Callable[[], float]
    matched: int = 0
    hits: int = 0

    def set_trigger(self, trigger: Trigger, draw: Callable[[], float]) -> None:
        """Fire at other matches from now on; what was counted stays."""
        self.trigger = trigger
        self.draw = draw

    @property
    def is_spent(self) -> bool:
        """Whether it will never fire again."""
        if self.order is Order.SEQUENCE and self.hits >= len(self.actions):
            return True
        return self.trigger.times is not None and self.hits >= self.trigger.times

    def fire(self, now_ms: int) -> Action | None:
        """Count one match; return what is to be done about it, None for nothing."""
        trigger = self.trigger
        if self.is_spent:
            return None
        if trigger.for_ms is not None and now_ms >= self.added_ms + trigger.for_ms:
            return None
        self.matched += 1
        number = self.matched - trigger.skip
        if number <= 0 or (number - 1) % trigger.every:
            return None
        if trigger.probability < 1 and self.draw() >= trigger.probability:
            return None
        self.hits += 1
        if self.order is Order.SEQUENCE:
            return self.actions[self.hits - 1]
        return self._drawn() if self.order is Order.SCHEDULE else self.actions[0]

    def _drawn(self) -> Action:
        left = self.draw() * sum(action.weight for action in self.actions)
        for action in self.actions:
            left -= action.weight
            if left < 0:
                return action
        return self.actions[-1]


@dataclass(slots=True)
class Hit:
    """A rule that fired for a request.

    Attributes:
        units: that it fired for; None for the request as a whole.
    """

    rule: Rule
    action: Action
    units: list[Unit] | None


class Rules:
    """The rules of one broker, in the order in which they were added."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter([*self._rules.values()])

    def add(
        self,
        match: Match,
        trigger: Trigger,
        actions: Sequence[Action],
        *,
        order: Order = Order.SAME,
        description: str = "",
        now_ms: int,
        draw: Callable[[], float],
    ) -> Rule:
        """Add a rule behind all others, and return it.

        Raises:
            ValueError: there are RULES_MAX already.
        """
        if len(self._rules) >= RULES_MAX:
            raise ValueError(f"there are {RULES_MAX} fault rules already; remove some")
        rule = Rule(
            rule_id=f"f{self._next}",
            match=match,
            trigger=trigger,
            actions=tuple(actions),
            order=order,
            description=description,
            added_ms=now_ms,
            draw=draw,
        )
        self._next += 1
        self._rules[rule.rule_id] = rule
        return rule

    def get(self, rule_id: str) -> Rule | None:
        """Return a rule by its id."""
        return self._rules.get(rule_id)

    def remove(self, rule_id: str) -> Rule | None:
        """Remove a rule; return it, None if there is none."""
        return self._rules.pop(rule_id, None)

    def clear(self) -> list[Rule]:
        """Remove all rules, and return them."""
        removed = [*self._rules.values()]
        self._rules.clear()
        return removed

    def decide(self, facts: RequestFacts, now_ms: int) -> list[Hit]:
        """Return which rules fire for a request; each unit is decided about once."""
        hits: list[Hit] = []
        decided: set[Unit] = set()
        for rule in self._rules.values():
            if not rule.match.matches_request(facts):
                continue
            if not rule.match.is_about_partitions:
                action = rule.fire(now_ms)
                if action is None or action.kind is Kind.PASS:
                    continue
                hits.append(Hit(rule, action, None))
                if action.kind is not Kind.DELAY:
                    return hits
                continue
            hits += self._decide_units(rule, facts, decided, now_ms)
        return hits

    def _decide_units(
        self, rule: Rule, facts: RequestFacts, decided: set[Unit], now_ms: int
    ) -> list[Hit]:
        by_action: dict[int, Hit] = {}
        for unit in facts.units:
            if unit in decided or not rule.match.matches_unit(unit, facts):
                continue
            action = rule.fire(now_ms)
            if action is None or action.kind is Kind.PASS:
                continue
            if action.kind is not Kind.DELAY:
                decided.add(unit)
            hit = by_action.setdefault(id(action), Hit(rule, action, []))
            assert hit.units is not None
            hit.units.append(unit)
        return [*by_action.values()]


def _fits(pattern: str | None, texts: Sequence[str]) -> bool:
    return pattern is None or any(fnmatchcase(text, pattern) for text in texts)
