"""Report of a failed test: requests to Kafka, its state, and sentences about likely mistakes.

Made of facts that `report_facts` takes; asks nobody.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Final

from kafkalite.types import TopicPartition

LINES_MAX: Final = 50
"""Lines of requests in a report, after what repeats was folded."""

QUIET: Final = frozenset(
    {"Fetch", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "ShareFetch"}
    | {"StreamsGroupHeartbeat", "Metadata", "ListOffsets", "FindCoordinator"}
)
"""What clients ask again and again: folded also where it is not in a row."""

LATE_S: Final = 1.0
"""An answer that is missing for longer is worth a sentence."""


@dataclass(slots=True, frozen=True, kw_only=True)
class Line:
    """One request; `ms` is None while there is no answer."""

    at_s: float
    client_id: str
    api: str
    version: int
    subject: str = ""
    topics: frozenset[str] = frozenset()
    errors: tuple[str, ...] = ()
    ms: float | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionFacts:
    """Offsets of a partition: first, next, and up to where `read_committed` sees."""

    start: int
    end: int
    stable: int


@dataclass(slots=True, frozen=True, kw_only=True)
class GroupFacts:
    """A group: a sentence about it, and what its members read and have committed."""

    sentence: str
    state: str
    reads: Mapping[str, Sequence[TopicPartition]] = field(default_factory=dict)
    """By client id."""
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Facts:
    """Facts that a report is made of; `now_s` is on the scale of the lines."""

    now_s: float
    lines: Sequence[Line] = ()
    topics: Mapping[str, Mapping[int, PartitionFacts]] = field(default_factory=dict)
    groups: Mapping[str, GroupFacts] = field(default_factory=dict)
    transactions: Sequence[tuple[str, str]] = ()
    """Transactional ids, and the states of those that are not over."""
    faults: Sequence[tuple[str, int]] = ()
    ahead_s: float = 0.0
    is_frozen: bool = False


@dataclass(slots=True, frozen=True)
class Report:
    """Texts for people, and the facts behind them as JSON lines for programs."""

    requests: str
    state: str
    diagnosis: str
    log: str = ""
    json_lines: str = ""

    def sections(self) -> list[tuple[str, str]]:
        """Return titles and texts of what is not empty."""
        named = (
            ("what may be wrong", self.diagnosis),
            ("requests to Kafka", self.requests),
            ("state of Kafka", self.state),
            ("log of Kafka", self.log),
        )
        return [(title, text) for title, text in named if text]


def make_report(facts: Facts, log: str = "") -> Report:
    """Return the texts for some facts."""
    return Report(
        "\n".join(request_lines(facts.lines)) or "none",
        "\n".join(state_lines(facts)),
        "\n".join(diagnosis(facts)),
        log,
        "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in json_facts(facts)),
    )


def json_facts(facts: Facts) -> Iterator[Mapping[str, object]]:
    """Yield each request, unfolded, and then what there is, by its kind."""
    for line in facts.lines:
        yield {"kind": "request", **asdict(line), "topics": sorted(line.topics)}
    for name, partitions in sorted(facts.topics.items()):
        ends = {index: asdict(each) for index, each in sorted(partitions.items())}
        yield {"kind": "topic", "name": name, "partitions": ends}
    for name, group in sorted(facts.groups.items()):
        reads = {client: [*map(str, places)] for client, places in group.reads.items()}
        committed = {str(place): offset for place, offset in group.committed.items()}
        told = {"state": group.state, "reads": reads, "committed": committed}
        yield {"kind": "group", "name": name, **told}
    for name, state in facts.transactions:
        yield {"kind": "transaction", "name": name, "state": state}
    for rule, hits in facts.faults:
        yield {"kind": "fault", "rule": rule, "hits": hits}
    yield {"kind": "clock", "ahead_s": facts.ahead_s, "frozen": facts.is_frozen}


def request_lines(lines: Sequence[Line]) -> list[str]:
    """Return a line for each request; what repeats is one with how often and until when."""
    told: list[tuple[Line, int, float]] = []
    places: dict[tuple[object, ...], int] = {}
    for line in lines:
        key = (line.client_id, line.api, line.version, line.subject, line.errors, line.ms is None)
        at = places.get(key)
        folds = at is not None and (at == len(told) - 1 or (line.api in QUIET and not line.errors))
        if folds:
            assert at is not None
            first, count, _ = told[at]
            told[at] = (first, count + 1, line.at_s)
            continue
        places[key] = len(told)
        told.append((line, 1, line.at_s))
    texts = [_told(*each) for each in told]
    if len(texts) > LINES_MAX:
        texts = [f"{len(texts) - LINES_MAX} lines before these", *texts[-LINES_MAX:]]
    return texts


def state_lines(facts: Facts) -> list[str]:
    """Return topics, groups, transactions, faults and the clock, a line each."""
    texts = []
    for name, partitions in sorted(facts.topics.items()):
        told = ", ".join(
            f"{index}: {each.start}-{each.end}" for index, each in sorted(partitions.items())
        )
        texts.append(f"topic {name!r}: offsets {told}")
    for name, group in sorted(facts.groups.items()):
        lag = {
            place: facts.topics[place.topic][place.partition].end - offset
            for place, offset in group.committed.items()
            if place.partition in facts.topics.get(place.topic, {})
        }
        behind = f"; lag {sum(lag.values())}" if lag else ""
        texts.append((group.sentence or f"group {name!r} is {group.state}") + behind)
    texts += [f"transaction of {name!r} is {state}" for name, state in facts.transactions]
    texts += [f"fault {what}: fired {hits} times" for what, hits in facts.faults]
    if facts.is_frozen or abs(facts.ahead_s) >= 1:
        frozen = ", and frozen" if facts.is_frozen else ""
        texts.append(f"the broker's clock is {facts.ahead_s:+.0f} s from the machine's{frozen}")
    return texts


def diagnosis(facts: Facts) -> list[str]:
    """Return in sentences what may be wrong, the likeliest first."""
    found: list[str] = []
    for look in (_unknown_topics, _errors, _waiting, _groups, _transactions, _faults, _clock):
        found += [each for each in look(facts) if each not in found]
    if not facts.lines:
        found.append("no client asked anything: are bootstrap.servers those of this broker?")
    return found


# --- What may be wrong ----------------------------------------------------------------------------


def _unknown_topics(facts: Facts) -> Iterable[str]:
    for line in facts.lines:
        if not {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"} & {*line.errors}:
            continue
        for topic in sorted(line.topics):
            if topic in facts.topics:
                continue
            near = get_close_matches(topic, facts.topics, n=1)
            more = f"; there is {near[0]!r}" if near else ""
            yield f"{_who(line)} asked for topic {topic!r}, which does not exist{more}"


_MEANINGS: Final = {
    "MESSAGE_TOO_LARGE": "sent a batch that is larger than max.message.bytes of the topic",
    "RECORD_LIST_TOO_LARGE": "sent a batch that is larger than a segment of the topic",
    "OFFSET_OUT_OF_RANGE": "asked for an offset that is not there: retention, or another topic of "
    "the same name",
    "ILLEGAL_GENERATION": "spoke for a generation that is over: the group was rebalanced meanwhile",
    "UNKNOWN_MEMBER_ID": "spoke as a member that the group does not have (any more): its session "
    "was over, or it was removed",
    "FENCED_MEMBER_EPOCH": "spoke as a member that was fenced, and has to join again",
    "FENCED_INSTANCE_ID": "has a group.instance.id that another member took over",
    "INVALID_PRODUCER_EPOCH": "was fenced: another producer has the same transactional.id, or its "
    "transaction timed out",
    "PRODUCER_FENCED": "was fenced: another producer has the same transactional.id",
    "INVALID_TXN_STATE": "did what the state of its transaction does not allow",
    "TOPIC_AUTHORIZATION_FAILED": "may not do that to the topic (kafkalite acls explain)",
    "GROUP_AUTHORIZATION_FAILED": "may not use that group (kafkalite acls explain)",
    "SASL_AUTHENTICATION_FAILED": "logged in with a wrong name or password",
    "INCONSISTENT_GROUP_PROTOCOL": "has no assignor or protocol in common with its group",
    "NOT_ENOUGH_REPLICAS": "wrote with acks=all while too few replicas were in sync",
    "TOPIC_ALREADY_EXISTS": "created a topic that is there",
    "CORRUPT_MESSAGE": "sent a batch whose checksum is wrong",
    "INVALID_TIMESTAMP": "sent a timestamp that the topic does not allow",
    "UNSUPPORTED_VERSION": "asked for what this broker does not have",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "sent batches whose sequence has a gap",
}


def _errors(facts: Facts) -> Iterable[str]:
    for line in facts.lines:
        for error in line.errors:
            meaning = _MEANINGS.get(error)
            if meaning is not None:
                about = f" ({line.subject})" if line.subject else ""
                yield f"{_who(line)} {meaning}: {line.api} -> {error}{about}"


def _waiting(facts: Facts) -> Iterable[str]:
    for line in facts.lines:
        if line.ms is None and facts.now_s - line.at_s >= LATE_S and line.api not in QUIET:
            yield (
                f"{_who(line)} got no answer to {line.api} ({line.subject}) for "
                f"{facts.now_s - line.at_s:.1f} s"
            )


def _groups(facts: Facts) -> Iterable[str]:
    for name, group in sorted(facts.groups.items()):
        if group.state.replace("_", "").lower() in ("preparingrebalance", "completingrebalance"):
            yield f"group {name!r} is rebalancing, and waits for members to join or to sync"
        read = {place for places in group.reads.values() for place in places}
        topics = {place.topic for place in read}
        for topic in sorted(topics):
            for index, each in sorted(facts.topics.get(topic, {}).items()):
                place = TopicPartition(topic, index)
                if each.end > each.start and place not in read:
                    yield f"{place} has records, and no member of group {name!r} reads it"
        for client, places in group.reads.items():
            if not places and read:
                yield f"{client!r} of group {name!r} has no partition: there are more members"
        yield from _latest(facts, name, group, read)


def _latest(
    facts: Facts, name: str, group: GroupFacts, read: Iterable[TopicPartition]
) -> Iterable[str]:
    committed = {place for place, offset in group.committed.items() if offset}
    looked = {topic for line in facts.lines if line.api == "ListOffsets" for topic in line.topics}
    behind = [
        place
        for place in sorted(read)
        if place not in committed
        and place.topic in looked
        and (found := facts.topics.get(place.topic, {}).get(place.partition)) is not None
        and found.end > found.start
    ]
    if behind:
        yield (
            f"group {name!r} has committed nothing of {', '.join(map(str, behind))}, which has "
            "records: with auto.offset.reset=latest it reads only what is written after it began"
        )


def _transactions(facts: Facts) -> Iterable[str]:
    for topic, partitions in sorted(facts.topics.items()):
        for index, each in sorted(partitions.items()):
            if each.stable < each.end:
                yield (
                    f"a transaction is open on {topic}-{index}: read_committed consumers see "
                    f"nothing from offset {each.stable} on"
                )


def _faults(facts: Facts) -> Iterable[str]:
    for what, hits in facts.faults:
        if hits:
            yield f"a fault rule fired {hits} times: {what}"
        else:
            yield f"a fault rule never fired: {what}"


def _clock(facts: Facts) -> Iterable[str]:
    if facts.is_frozen:
        yield "the broker's clock is frozen: nothing times out or expires"
    elif facts.ahead_s >= 60:
        yield (
            f"the broker's clock is {facts.ahead_s:.0f} s ahead: records with the client's own "
            "timestamps are that old for it"
        )


def _who(line: Line) -> str:
    return f"client {line.client_id!r}" if line.client_id else "a client without client.id"


def _told(line: Line, count: int, last_s: float) -> str:
    answer = "no answer" if line.ms is None else ", ".join(line.errors) or "ok"
    took = "" if line.ms is None else f" {line.ms:.1f} ms"
    times = "" if count == 1 else f" (x{count} until {last_s:.3f})"
    subject = f" {line.subject}" if line.subject else ""
    who = line.client_id or "-"
    return (
        f"{line.at_s:8.3f} {who:<16} {line.api} v{line.version}{subject} -> {answer}{took}{times}"
    )
