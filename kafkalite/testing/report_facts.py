"""Takes what a report is made of: of a broker in this process, and of a cluster over HTTP."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkalite.client.errors import ClientError
from kafkalite.faults.remote import call
from kafkalite.observe.rendering import subject_of, topics_of
from kafkalite.observe.requests import NAMES
from kafkalite.testing.groups import group_state
from kafkalite.testing.report import Facts, GroupFacts, Line, PartitionFacts, Report, make_report
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.api import ApiKey

if TYPE_CHECKING:
    from kafkalite.testing.cluster import Cluster
    from kafkalite.testing.journal import SeenRequest

REQUESTS_MAX: Final = 1_000
THINGS_MAX: Final = 20
"""Topics, and groups, of a cluster that are asked about."""

OPEN_STATES: Final = ("Ongoing",)
"""What is prepared is decided, and needs nobody any more."""


def lines_of(seen: "Iterable[SeenRequest]", since_s: float) -> list[Line]:
    """Return requests as a report has them."""
    return [
        Line(
            at_s=each.began_s - since_s,
            client_id=each.client_id,
            api=NAMES[each.api],
            version=each.version,
            subject=subject_of(each.message) + _size_of(each),
            topics=frozenset(topics_of(each.message)),
            errors=each.errors,
            ms=each.duration_ms,
        )
        for each in seen
    ]


def _size_of(seen: "SeenRequest") -> str:
    """Return whether a Fetch brought anything."""
    if seen.api is not ApiKey.FETCH or seen.response is None:
        return ""
    # Of a very large request only that it was answered is known.
    responses = getattr(seen.response, "responses", ())
    parts = [part for topic in responses for part in topic.partitions]
    return " records" if any(part.records for part in parts) else " empty"


def facts_of(services: Any, now_s: float, lines: Sequence[Line]) -> Facts:
    """Take the facts of a broker; in its thread."""
    image = services.metadata.image
    topics = {
        name: {
            index: PartitionFacts(
                start=partition.log.log_start_offset,
                end=partition.high_watermark,
                stable=partition.last_stable_offset,
            )
            for index, partition in services.replicas.partitions_of(name).items()
        }
        for name in image.topics
        if not name.startswith("__")
    }
    groups, transactions = {}, []
    for shard in services.coordinators.shards(CONSUMER_OFFSETS_TOPIC):
        for name in shard.groups:
            groups[name] = _group_facts(shard, name)
    for shard in services.coordinators.shards(TRANSACTION_STATE_TOPIC):
        transactions += [
            (each.transactional_id, each.state.label)
            for each in shard.transactions.values()
            if each.state.label in OPEN_STATES
        ]
    return Facts(now_s=now_s, lines=lines, topics=topics, groups=groups, transactions=transactions)


def _group_facts(shard: Any, name: str) -> GroupFacts:
    sentence, state, members = group_state(shard, name)
    committed = {
        TopicPartition(topic, index): each.offset
        for topic, offsets in shard.offsets.topics(name).items()
        for index, each in offsets.items()
    }
    reads: dict[str, list[TopicPartition]] = {}
    for member in members:
        reads.setdefault(member.client_id, []).extend(member.partitions)
    return GroupFacts(sentence=sentence, state=state, reads=reads, committed=committed)


def cluster_report(cluster: "Cluster", since_ms: int) -> Report:
    """Return the report of a cluster, as far as its brokers can be asked over HTTP.

    Args:
        cluster: that runs.
        since_ms: wall clock that is 0 in the report; what came before is left out.
    """
    lines: list[Line] = []
    facts = Facts(now_s=0.0)
    faults: list[tuple[str, int]] = []
    urls = cluster.http_urls()
    for number, url in urls.items():
        with contextlib.suppress(ClientError, KeyError):
            found = call(url, "GET", f"/requests?limit={REQUESTS_MAX}", prefix="/api/v1")
            lines += [_line_of(each, number, since_ms) for each in found["requests"]]
            rules = call(url, "GET", "/faults")["faults"]
            faults += [(f"{rule['rule']} on broker {number}", rule["hits"]) for rule in rules]
            clock = call(url, "GET", "/clock")
            facts.ahead_s, facts.is_frozen = clock["ahead_s"], clock["frozen"]
    clients = (line for line in lines if line.at_s >= 0 and not _is_own(line.client_id))
    facts.lines = sorted(clients, key=lambda line: line.at_s)
    facts.now_s = facts.lines[-1].at_s if facts.lines else 0.0
    facts.faults = faults
    if urls:
        with contextlib.suppress(ClientError, KeyError):
            url = next(iter(urls.values()))
            facts.topics = _topics_at(url)
            facts.groups = _groups_at(url)
    return make_report(facts, cluster.log_tails())


def _is_own(client_id: str) -> bool:
    return client_id.startswith(("broker-", "kafkalite"))


def _topics_at(url: str) -> dict[str, dict[int, PartitionFacts]]:
    found: dict[str, dict[int, PartitionFacts]] = {}
    listed = call(url, "GET", "/topics", prefix="/api/v1")["topics"]
    names = [topic["name"] for topic in listed if not topic["name"].startswith("__")]
    for name in names[:THINGS_MAX]:
        partitions = call(url, "GET", f"/topics/{name}/partitions", prefix="/api/v1")["partitions"]
        found[name] = {
            each["partition"]: PartitionFacts(
                start=each["start"] or 0,
                end=each["high_watermark"] or 0,
                stable=each["last_stable_offset"] or 0,
            )
            for each in partitions
        }
    return found


def _groups_at(url: str) -> dict[str, GroupFacts]:
    found = {}
    listed = call(url, "GET", "/groups", prefix="/api/v1")["groups"]
    for name in [group["group_id"] for group in listed][:THINGS_MAX]:
        group = call(url, "GET", f"/groups/{name}", prefix="/api/v1")
        reads: dict[str, list[TopicPartition]] = {}
        for member in group["members"]:
            places = reads.setdefault(member["client_id"], [])
            for topic, indexes in member["assignment"].items():
                places += [TopicPartition(topic, index) for index in indexes]
        members = ", ".join(f"{who} ({', '.join(map(str, its))})" for who, its in reads.items())
        found[name] = GroupFacts(
            sentence=f"group {name!r} is {group['state']}; members: {members or 'none'}",
            state=group["state"],
            reads=reads,
            committed={
                TopicPartition(each["topic"], each["partition"]): each["committed"]
                for each in group["offsets"]
                if each["committed"] is not None
            },
        )
    return found


def _line_of(found: Mapping[str, Any], number: int, since_ms: int) -> Line:
    return Line(
        at_s=(found["at_ms"] - since_ms) / 1_000,
        client_id=found["client_id"],
        api=found["api"].title().replace("_", ""),
        version=found["version"],
        subject=f"[{number}] {found['subject']}".rstrip(),
        topics=frozenset(found["topics"]),
        errors=tuple(found["errors"]),
        ms=found["total_ms"],
    )
