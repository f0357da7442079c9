"""What clients make of faults: each action against librdkafka, Java and franz-go, as a table.

    python -m compat_tests.fault_table           # runs all, writes docs/reference/faults.md
    python -m compat_tests.fault_table --check   # runs all, says what is different there
    python -m compat_tests.fault_table --new     # runs rows that the page does not have yet

A cell is what the client did by itself and what its user was told: "again" (it tried again, and the
user saw nothing), an error's name, a rebalance; and how many copies of one record were written.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat_tests.clients import all_clients
from compat_tests.driver import ClientError, encode_bytes
from kafkalite.faults.control import disk_fault
from kafkalite.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from compat_tests.driver import Driver

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "faults.md"
CLIENTS = ("Java", "confluent-kafka", "franz-go")
"""Java's own, librdkafka by its Python binding, and franz-go."""

OK = {"delay_s", "throttle_ms", "slow_bytes_per_s", "slice_bytes"}
"""Actions after which nobody has to ask again."""

REQUEST_TIMEOUT_MS = 1_000
"""How long clients wait for an answer that never comes."""

Said = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One fault.

    Attributes:
        name: as the table has it: what is done to which request.
        rule: as `POST /api/v1/control/faults` takes it, or a fault of the disk with its `op`.
        is_quick: run in CI, not only when the table is made.
    """

    name: str
    rule: Said = field(hash=False)
    is_quick: bool = False

    @property
    def is_slow(self) -> bool:
        """Whether the client's patience, which has to be small, is all that ends it."""
        return bool({"blackhole", "ignore"} & set(self.rule))

    @property
    def fine(self) -> str:
        """What is said of a client whose user saw nothing."""
        return "ok" if OK & set(self.rule) else "again"

    @property
    def options(self) -> Said:
        """What the client's driver is told."""
        return {"request_timeout_ms": REQUEST_TIMEOUT_MS} if self.is_slow else {}


THREE = ("NOT_LEADER_OR_FOLLOWER", {"disconnect": True}, {"delay_s": 0.1})
PRODUCE = (
    Row("`NOT_ENOUGH_REPLICAS`, twice", {"error": "NOT_ENOUGH_REPLICAS", "times": 2}, True),
    Row("`NOT_ENOUGH_REPLICAS` though applied", {"error": "NOT_ENOUGH_REPLICAS", "applied": True}),
    Row("`NOT_LEADER_OR_FOLLOWER`", {"error": "NOT_LEADER_OR_FOLLOWER"}),
    Row("wrong leader named (KIP-951)", {"wrong_leader": 4242}),
    Row("`KAFKA_STORAGE_ERROR`", {"error": "KAFKA_STORAGE_ERROR"}),
    Row("`CORRUPT_MESSAGE`", {"error": "CORRUPT_MESSAGE"}),
    Row("reply lost", {"lose_reply": True}, True),
    Row("connection closed before", {"disconnect": True}),
    Row("torn answer", {"truncate_bytes": 9}),
    Row("late by 0.3 s", {"delay_s": 0.3}),
    Row("throttled for 200 ms", {"throttle_ms": 200}),
    Row("never answered (black hole)", {"blackhole": True}, True),
    Row("never answered though applied", {"blackhole": True, "applied": True}),
    Row("ignored, while others of the connection are answered", {"ignore": True}),
    Row("answer at 100 bytes/s", {"slow_bytes_per_s": 100}),
    Row("answer in slices of 10 bytes", {"slice_bytes": 10, "pause_s": 0.01}),
    Row("disk full, once", {"op": "write", "error": "ENOSPC", "times": 1}, True),
    Row("disk broken, once", {"op": "write", "error": "EIO", "times": 1}),
    Row("disk that takes 0.3 s", {"op": "write", "delay_s": 0.3, "times": 1}),
    Row("three faults in sequence", {"sequence": THREE, "times": 3}),
    Row("three faults of a schedule, by seed", {"schedule": THREE, "seed": 7, "times": 3}),
    Row("`TOPIC_AUTHORIZATION_FAILED`", {"error": "TOPIC_AUTHORIZATION_FAILED"}, True),
    Row("`MESSAGE_TOO_LARGE`", {"error": "MESSAGE_TOO_LARGE"}),
    Row("`INVALID_RECORD`", {"error": "INVALID_RECORD"}),
    Row("`INVALID_PRODUCER_EPOCH`", {"error": "INVALID_PRODUCER_EPOCH"}),
)
FETCH = (
    Row("`NOT_LEADER_OR_FOLLOWER`", {"error": "NOT_LEADER_OR_FOLLOWER"}, True),
    Row("`KAFKA_STORAGE_ERROR`", {"error": "KAFKA_STORAGE_ERROR"}),
    Row("`OFFSET_OUT_OF_RANGE`", {"error": "OFFSET_OUT_OF_RANGE"}),
    Row("`FETCH_SESSION_ID_NOT_FOUND`", {"error": "FETCH_SESSION_ID_NOT_FOUND"}),
    Row("wrong checksum", {"corrupt": "crc"}),
    Row("connection closed", {"disconnect": True}),
    Row("torn answer", {"truncate_bytes": 30}),
    Row("never answered (black hole)", {"blackhole": True}, True),
    Row("late by 0.3 s", {"delay_s": 0.3}),
    Row("throttled for 200 ms", {"throttle_ms": 200}),
    Row("answer at 500 bytes/s", {"slow_bytes_per_s": 500}),
    Row("three faults of a schedule, by seed", {"schedule": THREE, "seed": 7, "times": 3}),
    Row("`TOPIC_AUTHORIZATION_FAILED`", {"error": "TOPIC_AUTHORIZATION_FAILED"}),
)
METADATA = (
    Row("of before the topic was made, twice", {"stale_metadata": True, "times": 2}, True),
    Row("`LEADER_NOT_AVAILABLE`, twice", {"error": "LEADER_NOT_AVAILABLE", "times": 2}),
    Row("never answered (black hole)", {"blackhole": True}),
    Row("late by 0.3 s", {"delay_s": 0.3}),
)
GROUP = (
    Row("member evicted", {"api": "Heartbeat", "evict_member": True}, True),
    Row("another round", {"api": "Heartbeat", "rebalance": True}),
    Row("coordinator moved", {"api": "Heartbeat", "move_coordinator": True}),
    Row("Heartbeat: never answered (black hole)", {"api": "Heartbeat", "blackhole": True}),
    Row("Heartbeat: late by 0.3 s", {"api": "Heartbeat", "delay_s": 0.3}),
    Row("Heartbeat: `ILLEGAL_GENERATION`", {"api": "Heartbeat", "error": "ILLEGAL_GENERATION"}),
    Row(
        "JoinGroup: `COORDINATOR_LOAD_IN_PROGRESS`",
        {"api": "JoinGroup", "error": "COORDINATOR_LOAD_IN_PROGRESS"},
    ),
    Row(
        "FindCoordinator: `COORDINATOR_NOT_AVAILABLE`, twice",
        {"api": "FindCoordinator", "error": "COORDINATOR_NOT_AVAILABLE", "times": 2},
    ),
)
COMMIT = (
    Row("reply lost", {"lose_reply": True}, True),
    Row("never answered (black hole)", {"blackhole": True}),
    Row("throttled for 200 ms", {"throttle_ms": 200}),
    Row("`COORDINATOR_LOAD_IN_PROGRESS`", {"error": "COORDINATOR_LOAD_IN_PROGRESS"}),
    Row("coordinator moved", {"move_coordinator": True}),
    Row("member evicted", {"evict_member": True}),
    Row("`REBALANCE_IN_PROGRESS`", {"error": "REBALANCE_IN_PROGRESS"}),
    Row("`OFFSET_METADATA_TOO_LARGE`", {"error": "OFFSET_METADATA_TOO_LARGE"}),
)
END_TXN = (
    Row("reply lost", {"lose_reply": True}, True),
    Row("connection closed before", {"disconnect": True}),
    Row("never answered (black hole)", {"blackhole": True}),
    Row("never answered though applied", {"blackhole": True, "applied": True}),
    Row("late by 0.3 s", {"delay_s": 0.3}),
    Row("`CONCURRENT_TRANSACTIONS`, twice", {"error": "CONCURRENT_TRANSACTIONS", "times": 2}),
    Row(
        "`COORDINATOR_NOT_AVAILABLE` though applied",
        {"error": "COORDINATOR_NOT_AVAILABLE", "applied": True},
    ),
    Row("coordinator moved", {"move_coordinator": True}),
    Row("producer fenced", {"fence_producer": True}),
    Row("`INVALID_TXN_STATE`", {"error": "INVALID_TXN_STATE"}),
)


class Bench:
    """One client and the broker that it uses."""

    def __init__(self, broker: Broker, driver: Driver, name: str) -> None:
        self.broker = broker
        self.driver = driver
        self.name = name
        self._count = 0

    def new_name(self) -> str:
        """Return a name that nothing has yet."""
        self._count += 1
        return f"{self.name}-{self._count}"

    def new_topic(self) -> str:
        """Make a topic."""
        name = self.new_name()
        self.broker.create_topic(name)
        return name

    @contextlib.contextmanager
    def fault(self, api: str, row: Row, **match: Any) -> Iterator[Any]:
        """Have the row's rule, once if it says nothing else."""
        if "op" in row.rule:
            fault = self.broker.faults.add_disk(disk_fault({**row.rule, "topic": match["topic"]}))
            yield fault
            self.broker.faults.clear()
            return
        said = {"api": api, "once": "times" not in row.rule or None, **match, **row.rule}
        rule = self.broker.faults.add({k: v for k, v in said.items() if v is not None})
        try:
            yield rule
        finally:
            self.broker.faults.remove(rule)


def produced(bench: Bench, row: Row, *, idempotence: bool) -> str:
    """Send one record while its Produce has the fault."""
    topic = bench.new_topic()
    with bench.fault("Produce", row, topic=topic) as rule:
        try:
            (result,) = bench.driver.produce(
                topic,
                [{"partition": 0, "value": b"x"}],
                acks="all",
                idempotence=idempotence,
                **row.options,
            )
            error = result.error
        except ClientError as failure:
            error = failure.code
    return f"{_told(error, rule, row.fine)}, {_copies(bench, topic)}"


def fetched(bench: Bench, row: Row) -> str:
    """Read a record of an assigned partition whose Fetch has the fault."""
    topic = bench.new_topic()
    bench.broker.produce(topic, b"x")
    with bench.fault("Fetch", row, topic=None if _is_whole(row) else topic) as rule:
        try:
            found = bench.driver.consume(
                topic, {0: 0}, 1, timeout_ms=8_000, reset="earliest", **row.options
            )
            error = None if [r.value for r in found] == [b"x"] else "WRONG_RECORDS"
        except ClientError as failure:
            error = failure.code
    return _told(error, rule, row.fine)


def announced(bench: Bench, row: Row) -> str:
    """Send one record to a topic that is made after the rule for its Metadata."""
    topic = bench.new_name()
    with bench.fault("Metadata", row, topic=topic) as rule:
        bench.broker.create_topic(topic)
        try:
            records = [{"partition": 0, "value": b"x"}]
            error = bench.driver.produce(topic, records, **row.options)[0].error
        except ClientError as failure:
            error = failure.code
    return f"{_told(error, rule, row.fine)}, {_copies(bench, topic)}"


def _copies(bench: Bench, topic: str) -> str:
    count = len(bench.broker.records(topic))
    return f"{count} {'copy' if count == 1 else 'copies'}"


def _is_whole(row: Row) -> bool:
    return row.rule.get("error") == "FETCH_SESSION_ID_NOT_FOUND" or "truncate_bytes" in row.rule


def grouped(bench: Bench, row: Row) -> str:
    """Be a member of a group while a request of it has the fault."""
    topic, group = bench.new_topic(), bench.new_name()
    bench.broker.produce(topic, b"1")
    is_before = row.rule["api"] in ("JoinGroup", "FindCoordinator")
    before = bench.fault("", row, group=group) if is_before else contextlib.nullcontext()
    with before as early:
        member = bench.driver.open_member(
            bench.new_name(), group, [topic], reset="earliest", **row.options
        )
        try:
            member.wait_records(1)
            with (
                contextlib.nullcontext(early)
                if is_before
                else bench.fault("", row, group=group) as rule
            ):
                _wait(lambda: rule.hits >= row.rule.get("times", 1))
                epoch = _changes(member)
                bench.broker.produce(topic, b"2")
                member.wait(lambda m: any(r.value == b"2" for r in m.records), "second record")
                _settle(member, epoch)
            lost = sum(kind == "revoked" for kind, _ in member.changes)
            error = None
        except ClientError as failure:
            error, lost = failure.code, 0
        finally:
            with contextlib.suppress(ClientError):
                member.close()
    if error is not None:
        return f"`{error}`"
    return row.fine if not lost else "rebalance: partitions given up, and had again"


def _changes(member: Any) -> int:
    return len(member.changes)


def _settle(member: Any, since: int) -> None:
    """Give a rebalance that was told a moment to come, where one comes."""
    until = time.monotonic() + 1.0
    while len(member.changes) <= since and time.monotonic() < until:
        time.sleep(0.02)


def committed(bench: Bench, row: Row) -> str:
    """Commit an offset while the OffsetCommit has the fault."""
    topic, group = bench.new_topic(), bench.new_name()
    bench.broker.produce(topic, b"1")
    member = bench.driver.open_member(
        bench.new_name(), group, [topic], reset="earliest", auto_commit=False, **row.options
    )
    error = None
    try:
        member.wait_records(1)
        with bench.fault("OffsetCommit", row, group=group) as rule:
            try:
                member.commit({topic: {0: 1}})
            except ClientError as failure:
                error = failure.code
        told = _told(error, rule, row.fine)
    finally:
        with contextlib.suppress(ClientError):
            member.close()
    stored = bench.broker.call_in_broker(lambda: _stored(bench.broker, group, topic))
    return f"{told}; {'committed' if stored == 1 else 'not committed'}"


def _stored(broker: Broker, group: str, topic: str) -> int | None:
    shard = broker.server.services.coordinators.shard_of("__consumer_offsets", group)
    found = shard.offsets.get(group, topic, 0)
    return None if found is None else int(found.offset)


def ended(bench: Bench, row: Row) -> str:
    """Commit a transaction while its EndTxn has the fault."""
    topic, name = bench.new_topic(), bench.new_name()
    call, error = bench.driver.call, None
    call("txn_open", producer=name, transactional_id=name, timeout_ms=60_000, **row.options)
    call("txn_begin", producer=name)
    records = [{"partition": 0, "key": None, "value": encode_bytes(b"x")}]
    call("txn_send", producer=name, topic=topic, records=records)
    with bench.fault("EndTxn", row, transactional_id=name) as rule:
        try:
            call("txn_commit", producer=name)
        except ClientError as failure:
            error = failure.code
    with contextlib.suppress(ClientError):
        call("txn_close", producer=name)
    count = len(bench.broker.records(topic, read_committed=True))
    return f"{_told(error, rule, row.fine)}; {'committed' if count else 'not committed'}"


def _told(error: str | None, rule: Any, fine: str) -> str:
    if not rule.hits:
        return "never asked"
    return fine if error is None else f"`{error}`"


def _wait(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    until = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("the fault did not come about")
        time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one kind; `run` fills a cell."""

    name: str
    title: str
    rows: Sequence[Row]
    run: Callable[[Bench, Row], str]


TABLES = (
    Table("produce", "Produce", PRODUCE, lambda b, r: produced(b, r, idempotence=False)),
    Table(
        "idempotent",
        "Produce with `enable.idempotence`",
        PRODUCE,
        lambda b, r: produced(b, r, idempotence=True),
    ),
    Table("fetch", "Fetch", FETCH, fetched),
    Table("metadata", "Metadata, before a Produce", METADATA, announced),
    Table("group", "A member of a group", GROUP, grouped),
    Table("commit", "OffsetCommit", COMMIT, committed),
    Table("transaction", "EndTxn, committing", END_TXN, ended),
)


@contextlib.contextmanager
def bench_of(client_name: str) -> Iterator[Bench]:
    """Start a broker and a client's driver."""
    client = next(c for c in all_clients() if c.name == client_name and c.is_current)
    config = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 100}
    with Broker(config=config) as broker:
        driver = client.start(broker.bootstrap)
        try:
            yield Bench(broker, driver, client_name)
        finally:
            driver.close()


def render(cells: Mapping[tuple[str, str, str], str], versions: Sequence[str]) -> str:
    """Return the tables as Markdown; cells by table, row and client."""
    lines: list[str] = []
    for table in TABLES:
        lines += ["", f"### {table.title}", "", f"| fault | {' | '.join(versions)} |"]
        lines.append("| --- " * (len(CLIENTS) + 1) + "|")
        for row in table.rows:
            told = [cells[table.name, row.name, client] for client in CLIENTS]
            lines.append(f"| {row.name} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def told_on_page(text: str) -> dict[tuple[str, str, str], str]:
    """Return the cells of the page."""
    cells: dict[tuple[str, str, str], str] = {}
    titles = {table.title: table.name for table in TABLES}
    table = None
    for line in _between_marks(text).splitlines():
        if line.startswith("### "):
            table = titles[line.removeprefix("### ")]
        elif line.startswith("| ") and table and not line.startswith(("| fault", "| ---")):
            name, *told = [cell.strip() for cell in line.strip("|").split(" | ")]
            cells |= {(table, name, c): t for c, t in zip(CLIENTS, told, strict=True)}
    return cells


BEGIN, END = "<!-- fault table: begin -->\n", "<!-- fault table: end -->"


def _between_marks(text: str) -> str:
    return text.partition(BEGIN)[2].partition(END)[0]


Cells = dict[tuple[str, str, str], str]


def run_all(known: Cells) -> tuple[Cells, list[str]]:
    """Run every row that is not known with every client; return all cells, and the clients."""
    cells = dict(known)
    versions = []
    for name in CLIENTS:
        with bench_of(name) as bench:
            versions.append(f"{name} {bench.driver.call('info')['version']}")
            for table in TABLES:
                for row in table.rows:
                    if (table.name, row.name, name) in known:
                        continue
                    try:
                        cells[table.name, row.name, name] = table.run(bench, row)
                    except Exception as error:  # a cell that cannot be is told
                        cells[table.name, row.name, name] = f"({type(error).__name__}: {error})"
                    print(table.name, row.name, name, cells[table.name, row.name, name], flush=True)
    return cells, versions


def main() -> int:
    """Make the tables, or compare them."""
    text = PAGE.read_text()
    cells, versions = run_all(told_on_page(text) if "--new" in sys.argv[1:] else {})
    if "--check" in sys.argv[1:]:
        told = told_on_page(text)
        other = {key: (told.get(key), cell) for key, cell in cells.items() if told.get(key) != cell}
        for key, (before, now) in other.items():
            print(f"{' / '.join(key)}: {before} -> {now}")
        return bool(other)
    head, _, rest = text.partition(BEGIN)
    PAGE.write_text(head + BEGIN + render(cells, versions) + END + rest.partition(END)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
