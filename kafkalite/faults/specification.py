"""Fault rules as flat names and values: the one form in which Python, HTTP and files say them.

    {"api": "Produce", "topic": "orders", "error": "NOT_ENOUGH_REPLICAS", "times": 3}

Everything is checked before a rule exists; a `FaultRuleError` says in one sentence what is wrong.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kafkalite.faults.answers import can_answer
from kafkalite.faults.facts import NAMING_GROUPS, NAMING_TRANSACTIONS
from kafkalite.faults.partitions import NAMING_TOPICS
from kafkalite.faults.rules import CORRUPTIONS, Action, Kind, Match, Order, Trigger
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode

MATCH_TEXTS: Final = (
    "client_id",
    "user",
    "listener",
    "peer",
    "topic",
    "group",
    "transactional_id",
    "header",
)
MATCH_NUMBERS: Final = ("partition", "version", "min_bytes")
MATCH_BYTES: Final = ("key", "value")
MATCH_NAMES: Final = ("api", *MATCH_TEXTS, *MATCH_NUMBERS, *MATCH_BYTES, "replica", "where")
TRIGGER_NAMES: Final = (
    "once",
    "times",
    "on_call",
    "after",
    "every",
    "always",
    "probability",
    "seed",
    "for_s",
)
ACTION_NAMES: Final = (
    "error",
    "lose_reply",
    "disconnect",
    "blackhole",
    "ignore",
    "delay_s",
    "throttle_ms",
    "truncate_bytes",
    "slice_bytes",
    "slow_bytes_per_s",
    "corrupt",
    "wrong_leader",
    "stale_metadata",
    "evict_member",
    "rebalance",
    "fence_producer",
    "move_coordinator",
    "transform",
    "sequence",
    "schedule",
)
SEVERAL: Final = ("sequence", "schedule")
OPTION_NAMES: Final = ("message", "applied", "leader", "reset", "pause_s", "unchecked")
OPTIONS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "error": ("message", "applied", "leader", "unchecked"),
    "lose_reply": ("reset",),
    "disconnect": ("reset", "applied"),
    "blackhole": ("applied",),
    "delay_s": ("applied",),
    "truncate_bytes": ("reset",),
    "slice_bytes": ("pause_s",),
}
"""By action; others have none."""

MEMBER_APIS: Final = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }
)
METADATA_APIS: Final = frozenset(
    {ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_TOPIC_PARTITIONS}
)
ACTS_ON: Final[Mapping[str, tuple[frozenset[ApiKey], str]]] = {
    "stale_metadata": (METADATA_APIS, "it answers from earlier metadata"),
    "evict_member": (MEMBER_APIS, "it takes out the member that asks"),
    "rebalance": (
        MEMBER_APIS - {ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT},
        "it is about classic and consumer groups, by a member that asks",
    ),
    "fence_producer": (
        NAMING_TRANSACTIONS - {ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_TRANSACTIONS},
        "it is about the transactional id of the producer that asks",
    ),
    "move_coordinator": (
        (NAMING_GROUPS | NAMING_TRANSACTIONS)
        - {ApiKey.FIND_COORDINATOR, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE},
        "it is about the coordinator that is asked",
    ),
}
"""Actions that make sense for some APIs alone, and why."""

CHAOS: Final[Sequence[Mapping[str, Any]]] = (
    {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"},
    {"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER"},
    {"api": ["Produce", "Fetch", "Metadata", "FindCoordinator", "Heartbeat"], "delay_s": 0.05},
    {"api": ["Produce", "Fetch", "OffsetCommit"], "disconnect": True},
    {"api": "FindCoordinator", "error": "COORDINATOR_NOT_AVAILABLE"},
    {"api": "OffsetCommit", "error": "COORDINATOR_LOAD_IN_PROGRESS"},
)
"""What every client must bear: a mild schedule of random faults."""

CHAOS_PROBABILITY: Final = 0.02
NAMES: Final = frozenset((*MATCH_NAMES, *TRIGGER_NAMES, *ACTION_NAMES, *OPTION_NAMES))

OK: Final = "ok"
"""Element of a sequence that lets a request through."""

SLOW_PIECES_PER_S: Final = 20
DEFAULT_PAUSE_S: Final = 0.1
SECONDS_MAX: Final = 3_600.0
SEQUENCE_MAX: Final = 10_000


class FaultRuleError(ValueError):
    """A fault rule that does not fit; the message says why, in one sentence."""


@dataclass(slots=True, frozen=True)
class Specification:
    """A rule that is not among others yet."""

    match: Match
    trigger: Trigger
    actions: tuple[Action, ...]
    order: Order
    description: str


def parse(said: Mapping[str, Any]) -> Specification:
    """Return the rule that names and values describe.

    Raises:
        FaultRuleError: a name is unknown, a value does not fit, there is not one action, or an API
            never answers the error code that it is to answer (`unchecked` allows it).
    """
    unknown = [name for name in said if name not in NAMES]
    if unknown:
        raise FaultRuleError(
            f"a fault rule has no {unknown[0]!r}; it has {', '.join(sorted(NAMES))}"
        )
    match = parse_match(said)
    actions, order = _parse_actions(said, match)
    if match.is_about_partitions and match.apis is None:
        raise FaultRuleError("a rule about a topic, a partition or records names its api")
    _check_match(said, match)
    trigger = parse_trigger(said)
    if order is Order.SEQUENCE and trigger.times is not None and trigger.times > len(actions):
        raise FaultRuleError(
            f"a sequence of {len(actions)} is over after {len(actions)} times, not {trigger.times}"
        )
    if said.get("seed") is not None and trigger.probability == 1 and order is not Order.SCHEDULE:
        raise FaultRuleError("a seed is for probability or schedule; nothing is drawn here")
    return Specification(match, trigger, actions, order, describe(said))


def chaos(said: Mapping[str, Any]) -> list[Specification]:
    """Return the rules of a mild schedule of random faults, which every client must bear.

    Args:
        said: `seed` and `probability` of each rule, and which requests are meant by `client_id`,
            `user`, `listener` or `peer`.

    Raises:
        FaultRuleError: as `parse`.
    """
    allowed = ("seed", "probability", "client_id", "user", "listener", "peer")
    unknown = [name for name in said if name not in allowed]
    if unknown:
        raise FaultRuleError(f"chaos has no {unknown[0]!r}; it has {', '.join(allowed)}")
    seed = _whole(said, "seed") or 0
    whole = {"probability": CHAOS_PROBABILITY, **said}
    return [parse({**each, **whole, "seed": seed + at}) for at, each in enumerate(CHAOS)]


def _check_match(said: Mapping[str, Any], match: Match) -> None:
    """Refuse what no request of these APIs could ever match."""
    for names, naming, what in (
        (("topic", "partition"), NAMING_TOPICS, "topics"),
        (("group",), NAMING_GROUPS, "groups"),
        (("transactional_id",), NAMING_TRANSACTIONS, "transactional ids"),
        (("key", "value", "header"), frozenset({ApiKey.PRODUCE}), "records"),
    ):
        given = [name for name in names if said.get(name) is not None]
        wrong = sorted(api.name for api in match.apis or () if api not in naming)
        if given and wrong:
            raise FaultRuleError(
                f"a request of {wrong[0]} has no {what}: {given[0]} would never match"
            )


def describe(said: Mapping[str, Any]) -> str:
    """Return a rule in one line, for logs and lists."""
    return " ".join(
        name if value is True else f"{name}={value}"
        for name, value in said.items()
        if value is not None and value is not False
    )


def parse_match(said: Mapping[str, Any]) -> Match:
    """Return which requests are meant."""
    named: dict[str, Any] = {}
    for name in MATCH_TEXTS:
        named[name] = _text(said, name)
    for name in MATCH_NUMBERS:
        named[name] = _whole(said, name)
    for name in MATCH_BYTES:
        named[name] = _bytes(said, name)
    where = said.get("where")
    if where is not None and not callable(where):
        raise FaultRuleError("where is a function of the request, and only Python has it")
    return Match(apis=_apis(said.get("api")), replica=_flag(said, "replica"), where=where, **named)


def parse_trigger(said: Mapping[str, Any]) -> Trigger:
    """Return when the rule fires; always, if nothing is said about it."""
    exclusive = [name for name in ("once", "times", "on_call", "always") if said.get(name)]
    if len(exclusive) > 1:
        raise FaultRuleError(f"{exclusive[0]} and {exclusive[1]} contradict each other")
    if said.get("every") is not None and exclusive and exclusive[0] in ("once", "on_call"):
        raise FaultRuleError(f"every and {exclusive[0]} contradict each other")
    skip, times = _whole(said, "after") or 0, _whole(said, "times", least=1)
    on_call = _whole(said, "on_call", least=1)
    if _flag(said, "once"):
        times = 1
    if on_call is not None:
        skip, times = skip + on_call - 1, 1
    probability = _number(said, "probability", most=1.0)
    for_s = _number(said, "for_s")
    return Trigger(
        skip=skip,
        every=_whole(said, "every", least=1) or 1,
        times=times,
        probability=1.0 if probability is None else probability,
        seed=_whole(said, "seed") or 0,
        for_ms=None if for_s is None else int(for_s * 1_000),
    )


def api_named(name: str) -> ApiKey:
    """Return an API by its name, as Kafka's documentation or its messages write it.

    Raises:
        FaultRuleError: Kafka has none of this name.
    """
    wanted = name.replace("_", "").lower()
    for key in ApiKey:
        if key.name.replace("_", "").lower() == wanted:
            return key
    raise FaultRuleError(f"Kafka has no API named {name!r}")


def error_named(value: object) -> ErrorCode:
    """Return an error by its name or number.

    Raises:
        FaultRuleError: Kafka has none of this name or number, or it is NONE.
    """
    try:
        if isinstance(value, str) and not value.lstrip("-").isdigit():
            code = ErrorCode[value]
        else:
            code = ErrorCode(int(value))  # type: ignore[call-overload]
    except (KeyError, ValueError, TypeError):
        raise FaultRuleError(f"Kafka has no error {value!r}") from None
    if code is ErrorCode.NONE:
        raise FaultRuleError("NONE is no error")
    return code


def _parse_actions(said: Mapping[str, Any], match: Match) -> tuple[tuple[Action, ...], Order]:
    given = [name for name in ACTION_NAMES if _is_given(said.get(name))]
    if len(given) != 1:
        what = f"has {' and '.join(given)}" if given else "has none"
        raise FaultRuleError(
            f"a fault rule has one action of {', '.join(ACTION_NAMES)}; this {what}"
        )
    if given[0] not in SEVERAL:
        return (_action(given[0], said, match),), Order.SAME
    for name in OPTION_NAMES:
        if _is_given(said.get(name)) and name != "unchecked":
            raise FaultRuleError(f"{name} belongs to an element of the {given[0]}")
    elements = said[given[0]]
    if not isinstance(elements, Iterable) or isinstance(elements, str | bytes | Mapping):
        raise FaultRuleError(f"a {given[0]} is a list")
    listed = [*elements]
    if not 0 < len(listed) <= SEQUENCE_MAX:
        raise FaultRuleError(f"a {given[0]} has 1 to {SEQUENCE_MAX} elements")
    more = {"unchecked": True} if _flag(said, "unchecked") else {}
    actions = tuple(_element(element, match, more) for element in listed)
    if given[0] == "sequence":
        return actions, Order.SEQUENCE
    if not sum(action.weight for action in actions):
        raise FaultRuleError("the weights of a schedule are all 0")
    return actions, Order.SCHEDULE


def _element(element: object, match: Match, more: Mapping[str, Any]) -> Action:
    if element == OK:
        return Action(kind=Kind.PASS)
    if isinstance(element, str | int):
        element = {"error": element}
    if not isinstance(element, Mapping):
        raise FaultRuleError(f"a sequence has 'ok', errors and actions, not {element!r}")
    weight = _number(element, "weight")
    said = {name: value for name, value in element.items() if name != "weight"}
    weighed = 1.0 if weight is None else weight
    if said == {OK: True}:
        return Action(kind=Kind.PASS, weight=weighed)
    given = [name for name in ACTION_NAMES if _is_given(said.get(name))]
    wrong = [name for name in said if name not in (*ACTION_NAMES, *OPTION_NAMES)]
    if wrong or len(given) != 1 or given[0] in SEVERAL:
        raise FaultRuleError(f"an element of a sequence is one action, not {dict(element)!r}")
    if given[0] == "error":
        said |= more
    return replace(_action(given[0], said, match), weight=weighed)


def _action(name: str, said: Mapping[str, Any], match: Match) -> Action:
    for option in OPTION_NAMES:
        if _is_given(said.get(option)) and option not in OPTIONS_OF.get(name, ()):
            raise FaultRuleError(f"{name} has no {option}")
    apis, why = ACTS_ON.get(name, (None, ""))
    if apis is not None and (match.apis is None or not match.apis <= apis):
        names = ", ".join(sorted(api.name for api in apis))
        raise FaultRuleError(f"{name} is for {names}: {why}")
    reset, applied = _flag(said, "reset"), _flag(said, "applied")
    simple = {
        "lose_reply": Kind.LOSE_REPLY,
        "disconnect": Kind.DISCONNECT,
        "blackhole": Kind.BLACKHOLE,
        "ignore": Kind.IGNORE,
        "stale_metadata": Kind.STALE_METADATA,
        "evict_member": Kind.EVICT_MEMBER,
        "rebalance": Kind.REBALANCE,
        "fence_producer": Kind.FENCE_PRODUCER,
        "move_coordinator": Kind.MOVE_COORDINATOR,
    }
    if name in simple:
        _flag(said, name)
        return Action(kind=simple[name], reset=reset, applied=applied)
    if name == "delay_s":
        is_late = said.get("applied") is False
        seconds = _number(said, name, most=SECONDS_MAX) or 0.0
        return Action(kind=Kind.DELAY, seconds=seconds, applied=not is_late)
    return _ACTIONS[name](said, match)


def _error(said: Mapping[str, Any], match: Match) -> Action:
    code = error_named(said["error"])
    if not _flag(said, "unchecked"):
        for api in match.apis or ():
            if not can_answer(api, code):
                raise FaultRuleError(
                    f"Kafka's {api.name} never answers {code.name}, and clients may take it badly; "
                    "unchecked=True sends it all the same"
                )
    return Action(
        kind=Kind.ERROR,
        code=code,
        message=_text(said, "message"),
        applied=_flag(said, "applied"),
        leader=_whole(said, "leader"),
    )


def _wrong_leader(said: Mapping[str, Any], match: Match) -> Action:
    named = said["wrong_leader"]
    if isinstance(named, bool) or not isinstance(named, int):
        raise FaultRuleError("wrong_leader is the id of a broker, which need not exist")
    if match.apis is None or not match.apis <= {ApiKey.PRODUCE, ApiKey.FETCH}:
        raise FaultRuleError("wrong_leader is for Produce and Fetch: their answers name the leader")
    return Action(kind=Kind.ERROR, code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=named)


def _throttle(said: Mapping[str, Any], match: Match) -> Action:
    del match
    return Action(kind=Kind.THROTTLE, throttle_ms=_whole(said, "throttle_ms", least=1) or 1)


def _truncate(said: Mapping[str, Any], match: Match) -> Action:
    del match
    count = _whole(said, "truncate_bytes", least=1) or 1
    return Action(kind=Kind.TRUNCATE, count_bytes=count, reset=_flag(said, "reset"))


def _slice(said: Mapping[str, Any], match: Match) -> Action:
    del match
    pause_s = _number(said, "pause_s", most=SECONDS_MAX)
    return Action(
        kind=Kind.SLICE,
        count_bytes=_whole(said, "slice_bytes", least=1) or 1,
        seconds=DEFAULT_PAUSE_S if pause_s is None else pause_s,
    )


def _slow(said: Mapping[str, Any], match: Match) -> Action:
    del match
    bytes_per_s = _whole(said, "slow_bytes_per_s", least=1) or 1
    pieces_per_s = min(SLOW_PIECES_PER_S, bytes_per_s)
    return Action(
        kind=Kind.SLICE, count_bytes=bytes_per_s // pieces_per_s, seconds=1 / pieces_per_s
    )


def _corrupt(said: Mapping[str, Any], match: Match) -> Action:
    what = said["corrupt"]
    if what not in CORRUPTIONS:
        raise FaultRuleError(f"corrupt is one of {', '.join(CORRUPTIONS)}, not {what!r}")
    if match.apis != frozenset({ApiKey.FETCH}):
        raise FaultRuleError("corrupt is for Fetch: it damages the records in an answer")
    return Action(kind=Kind.CORRUPT, corruption=what)


def _transform(said: Mapping[str, Any], match: Match) -> Action:
    del match
    transform = said["transform"]
    if not callable(transform):
        raise FaultRuleError("transform is a function of request and response; only Python has it")
    return Action(kind=Kind.TRANSFORM, transform=transform)


_ACTIONS: Final[Mapping[str, Callable[[Mapping[str, Any], Match], Action]]] = {
    "error": _error,
    "wrong_leader": _wrong_leader,
    "throttle_ms": _throttle,
    "truncate_bytes": _truncate,
    "slice_bytes": _slice,
    "slow_bytes_per_s": _slow,
    "corrupt": _corrupt,
    "transform": _transform,
}


def _is_given(value: object) -> bool:
    return value is not None and value is not False


def _apis(said: object) -> frozenset[ApiKey] | None:
    if said is None:
        return None
    names = [said] if isinstance(said, str | ApiKey) else said
    if not isinstance(names, Iterable):
        raise FaultRuleError(f"api is a name or a list of names, not {said!r}")
    listed = [*names]
    if not listed or not all(isinstance(name, str | ApiKey) for name in listed):
        raise FaultRuleError(f"api is a name or a list of names, not {said!r}")
    return frozenset(n if isinstance(n, ApiKey) else api_named(n) for n in listed)


def _text(said: Mapping[str, Any], name: str) -> str | None:
    value = said.get(name)
    if value is not None and not isinstance(value, str):
        raise FaultRuleError(f"{name} is text, not {value!r}")
    return value


def _whole(said: Mapping[str, Any], name: str, *, least: int = 0) -> int | None:
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise FaultRuleError(f"{name} is a whole number of {least} or more, not {value!r}")
    return value


def _number(said: Mapping[str, Any], name: str, *, most: float | None = None) -> float | None:
    value = said.get(name)
    if value is None:
        return None
    fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    if not fits or (most is not None and value > most):
        limit = "" if most is None else f" to {most:g}"
        raise FaultRuleError(f"{name} is a number from 0{limit}, not {value!r}")
    return float(value)


def _flag(said: Mapping[str, Any], name: str) -> bool:
    value = said.get(name)
    if value is not None and not isinstance(value, bool):
        raise FaultRuleError(f"{name} is true or false, not {value!r}")
    return bool(value)


def _bytes(said: Mapping[str, Any], name: str) -> bytes | None:
    """Return bytes given as such, as text, or as {"b64": ...} in JSON."""
    value = said.get(name)
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Mapping) and set(value) == {"b64"}:
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise FaultRuleError(f"{name} has no valid base64") from None
    raise FaultRuleError(f'{name} is text, or {{"b64": ...}}, not {value!r}')
