"""Fixtures for tests that need a broker; registered by the `pytest11` entry point.

    def test_orders(kafka_broker, kafka_topic):
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka_broker.bootstrap})
        producer.produce(kafka_topic, b"hello")
        producer.flush()
        assert kafka_broker.records(kafka_topic)[0].value == b"hello"

Nothing of kafkalite is imported until a test asks for a fixture: every pytest run on this machine
loads this module.
"""

import contextlib
import itertools
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kafkalite.testing.broker import Broker
    from kafkalite.testing.clock import BrokerClock
    from kafkalite.testing.cluster import Cluster
    from kafkalite.testing.faults import Faults
    from kafkalite.testing.report import Report

MARKER = "kafka_topic"
CLUSTER_MARKER = "kafka_cluster"
SECURE_MARKER = "kafka_secure"
RECORDS_MARKER = "kafka_records"
CHAOS_MARKER = "kafka_chaos"
CHAOS_FIXTURE = "kafka_chaos_rules"
JOURNAL_OPTION = "--kafka-journal"
NAME_MAX = 200
"""Kafka allows 249 characters in a topic's name."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known, and the directory of reports.

    Raises:
        UsageError: it cannot be made.
    """
    directory = config.getoption(JOURNAL_OPTION, default=None)
    if directory is not None:
        try:
            _journal_of(config, directory).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise pytest.UsageError(f"{JOURNAL_OPTION} {directory}: {error.strerror}") from None
    config.addinivalue_line(
        "markers",
        f"{MARKER}(partitions=1, config=None): how the topic of the fixture kafka_topic is made",
    )
    config.addinivalue_line(
        "markers",
        f"{CLUSTER_MARKER}(brokers=3, config=None): what the fixture kafka_cluster is made of",
    )
    config.addinivalue_line(
        "markers",
        f"{SECURE_MARKER}(mechanism='SCRAM-SHA-512', tls=True, users=None, acls=None): "
        "what the fixture kafka_secure is made of",
    )
    config.addinivalue_line(
        "markers",
        f"{RECORDS_MARKER}(*paths): fixtures, beside the test's file, that kafka_topic is filled "
        "with; records that name no topic go to it",
    )
    config.addinivalue_line(
        "markers",
        f"{CHAOS_MARKER}(seed=0, probability=0.02): run the test while kafka_broker has random "
        "faults that every client must bear",
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("kafkalite")
    group.addoption(
        JOURNAL_OPTION,
        metavar="DIR",
        help="write what Kafka was asked, and its state, to a file for each test that fails",
    )
    group.addoption(
        "--kafka-chaos-seeds",
        type=int,
        default=1,
        metavar="N",
        help=f"run each test with the marker {CHAOS_MARKER} for so many seeds",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests with the chaos marker their rules, once for each seed; the id tells the seed."""
    marker = metafunc.definition.get_closest_marker(CHAOS_MARKER)
    if marker is None:
        return
    options = dict(marker.kwargs)
    first = options.pop("seed", marker.args[0] if marker.args else 0)
    count = metafunc.config.getoption("--kafka-chaos-seeds")
    metafunc.fixturenames.append(CHAOS_FIXTURE)
    metafunc.parametrize(
        CHAOS_FIXTURE,
        [(seed, options) for seed in range(first, first + count)],
        ids=[f"chaos-seed-{seed}" for seed in range(first, first + count)],
        indirect=True,
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let tests with the chaos marker have their rules without naming them."""
    if item.get_closest_marker(CHAOS_MARKER) is None or not isinstance(item, pytest.Function):
        return
    if CHAOS_FIXTURE not in item.fixturenames:
        item.fixturenames.append(CHAOS_FIXTURE)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add to the report of a test that failed what Kafka was asked meanwhile, and its state."""
    outcome: Any = yield
    report = outcome.get_result()
    if not report.failed:
        return
    sections: list[tuple[str, str]] = []
    json_lines = ""
    directory = item.config.getoption(JOURNAL_OPTION)
    fixtures = {id(each): each for each in getattr(item, "funcargs", {}).values()}
    for fixture in fixtures.values():  # one may come by several names
        take = _REPORTS.get((type(fixture).__module__, type(fixture).__name__))
        if take is None:
            continue
        try:
            told = take(fixture, item.stash.get(_BEGAN, (0.0, 0)))
        except RuntimeError:  # it was stopped by the test
            continue
        sections += told.sections()
        json_lines += told.json_lines
        if directory is not None:
            kept = _path_of(_journal_of(item.config, directory), report, f"{len(sections)}.data")
            with contextlib.suppress(RuntimeError):  # it has several log directories
                sections.append(("data of Kafka", _keep_data(fixture, kept)))
    if sections and directory is not None:
        _write_report(_journal_of(item.config, directory), report, sections, json_lines)
    report.sections += sections


def _keep_data(fixture: Any, target: Path) -> str:
    from kafkalite.testing.kept_data import keep_data

    return keep_data(fixture, target)


def _journal_of(config: pytest.Config, directory: str) -> Path:
    return config.invocation_params.dir / directory


def _write_report(
    directory: Path,
    report: pytest.TestReport,
    sections: list[tuple[str, str]],
    json_lines: str,
) -> None:
    """Write a test's failure for people and for programs."""
    failure = ("failure", report.longreprtext)
    parts = [f"--- {title}\n\n{text.rstrip()}\n" for title, text in (*sections, failure)]
    text = f"{report.nodeid}\n\n" + "\n".join(parts)
    _path_of(directory, report, "txt").write_text(text, encoding="utf-8")
    _path_of(directory, report, "jsonl").write_text(json_lines, encoding="utf-8")


def _path_of(directory: Path, report: pytest.TestReport, suffix: str) -> Path:
    """Return where something of a test is put; a checksum of its whole id is in the name."""
    name = _NOT_IN_NAMES.sub("-", report.nodeid)[-NAME_MAX:].strip("-.")
    when = "" if report.when == "call" else f"-{report.when}"
    return directory / f"{name}-{zlib.crc32(report.nodeid.encode()):08x}{when}.{suffix}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember when a test began: its report is of what was asked from then on."""
    item.stash[_BEGAN] = (time.perf_counter(), time.time_ns() // 1_000_000)


_BEGAN = pytest.StashKey[tuple[float, int]]()
_REPORTS: Mapping[tuple[str, str], Callable[[Any, tuple[float, int]], "Report"]] = {
    ("kafkalite.testing.broker", "Broker"): lambda broker, began: broker.report(began[0]),
    ("kafkalite.testing.cluster", "Cluster"): lambda cluster, began: cluster.report(began[1]),
}
"""By class, which is not imported here: what reports are taken from."""


@pytest.fixture(scope="session")
def kafka_config() -> Mapping[str, Any]:
    """Broker settings for the whole session, by Kafka's names; override it in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_config: Mapping[str, Any]) -> "Iterator[Broker]":
    """Run a broker for the whole session, in this process, on a free port."""
    from kafkalite.testing.broker import Broker

    with Broker(config=kafka_config) as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """Create a topic for one test, named after it; it is deleted when the test is over."""
    marker = request.node.get_closest_marker(MARKER)
    options = dict(marker.kwargs) if marker is not None else {}
    name = _NOT_IN_NAMES.sub("-", request.node.name)[:NAME_MAX].strip("-.")
    topic = f"{name}-{next(_numbers)}"
    kafka_broker.create_topic(topic, **options)
    records = request.node.get_closest_marker(RECORDS_MARKER)
    for path in () if records is None else records.args:
        kafka_broker.load(request.path.parent / path, topic=topic)
    yield topic
    if topic in kafka_broker.topics():
        kafka_broker.delete_topic(topic)


@pytest.fixture
def kafka_faults(kafka_broker: "Broker") -> "Iterator[Faults]":
    """Give the broker's fault rules, and remove them when the test is over.

    One that never fired is warned of: the test tested nothing with it.
    """
    yield kafka_broker.faults
    kafka_broker.faults.clear()


@pytest.fixture
def kafka_clock(kafka_broker: "Broker") -> "Iterator[BrokerClock]":
    """Give the broker's clock, and make it the machine's again when the test is over."""
    yield kafka_broker.clock
    kafka_broker.clock.reset()


@pytest.fixture
def kafka_chaos_rules(kafka_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[None]:
    """Have random faults during one test, by the marker kafka_chaos."""
    seed, options = request.param
    rules = kafka_broker.faults.chaos(seed, **options)
    yield
    for rule in rules:
        rule.remove()


@pytest.fixture
def kafka_secure(
    kafka_config: Mapping[str, Any], request: pytest.FixtureRequest
) -> "Iterator[Broker]":
    """Run a broker with TLS and users for one test; `@pytest.mark.kafka_secure` says with which."""
    from kafkalite.testing.broker import Broker

    marker = request.node.get_closest_marker(SECURE_MARKER)
    options: dict[str, Any] = {"tls": True, "users": {"alice": "secret"}}
    options |= {} if marker is None else marker.kwargs
    mechanism = options.pop("mechanism", None)
    with Broker(config=kafka_config, **options) as broker:
        if mechanism is not None:
            broker.mechanism = mechanism
        yield broker


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """Run a cluster of broker processes for one test, which may break it."""
    from kafkalite.testing.cluster import Cluster

    marker = request.node.get_closest_marker(CLUSTER_MARKER)
    with Cluster(**({} if marker is None else marker.kwargs)) as cluster:
        yield cluster
