"""sarama's functional tests: five brokers, each behind a Toxiproxy, some stopped by Docker.

The tests bring their cluster up by `docker compose`; `docker.py` stands in for it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import sys
import tempfile
import threading
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.apache_kafka import KAFKA_4
from compat_tests.cache import locked
from compat_tests.client_suites import docker
from compat_tests.client_suites.brokers import Brokers, brokers_of
from compat_tests.client_suites.go_tests import (
    built_tests,
    fetched_module,
    installed_program,
    run_tests,
    tests_in,
)
from compat_tests.client_suites.scripts import write_kafka_scripts, write_script
from kafkalite.testing.processes import Child, wait_until_true

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compat_tests.client_suites.results import Outcome

MODULE = "github.com/IBM/sarama"
VERSION = "v1.61.1"
TITLE = f"sarama {VERSION.removeprefix('v')}: functional tests"

_TOXIPROXY = "github.com/Shopify/toxiproxy/v2/cmd/server"
_TOXIPROXY_VERSION = "v2.5.0"

_BROKERS = 5
#: Ports that the tests have written into them.
_API_PORT = 8474
_FIRST_PORT = 29091

#: As the suite's docker-compose.yml sets them, over what Kafka's own server.properties sets.
_CONFIG = {
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "50",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "delete.topic.enable": "true",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "replica.lag.time.max.ms": "30000",
}
_ZOOKEEPER = {"zookeeper.session.timeout.ms": "6000", "zookeeper.connection.timeout.ms": "6000"}


def run(kind: str, log_file: Path, only: Sequence[str] = ()) -> dict[str, Outcome]:
    """Run the functional tests, or only some, against a cluster of this kind."""
    module = fetched_module(MODULE, VERSION)
    program = built_tests(module, tags="functional")
    names = list(only) or tests_in(module.glob("functional_*_test.go"))
    with locked("sarama-suite"), _environment(kind) as environment:
        return run_tests(program, names, environment=environment, log_file=log_file)


@contextlib.contextmanager
def _environment(kind: str) -> Iterator[dict[str, str]]:
    """Start everything that the tests want; yield the variables that they are run with."""
    ports = {number: _FIRST_PORT + number - 1 for number in range(1, _BROKERS + 1)}
    own = _ZOOKEEPER if kind == "kafkalite" else {}
    with tempfile.TemporaryDirectory(prefix="sarama-") as scratch, contextlib.ExitStack() as stack:
        folder = Path(scratch)
        brokers = stack.enter_context(
            brokers_of(
                kind,
                _BROKERS,
                {**_CONFIG, **own},
                broker_config={number: {"broker.rack": str(number)} for number in ports},
                advertised={number: f"localhost:{port}" for number, port in ports.items()},
            )
        )
        stack.enter_context(_toxiproxy(brokers, ports, folder))
        socket = stack.enter_context(_orders(brokers, folder))
        tools = folder / "bin"
        write_kafka_scripts(tools)
        write_script(tools / "docker", [sys.executable, docker.__file__])
        replaced = {
            f"/opt/kafka-{KAFKA_4}/bin": str(tools),
            "kafka-1:9091": brokers.addresses[1],
        }
        yield {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "KAFKA_VERSION": KAFKA_4,
            docker.SOCKET_VARIABLE: socket,
            docker.REPLACED_VARIABLE: json.dumps(replaced),
        }


@contextlib.contextmanager
def _toxiproxy(brokers: Brokers, ports: Mapping[int, int], folder: Path) -> Iterator[None]:
    """Run a Toxiproxy with the proxies that the tests look for."""
    program = installed_program(_TOXIPROXY, _TOXIPROXY_VERSION) / "server"
    command = [str(program), "-host", "127.0.0.1", "-port", str(_API_PORT)]
    proxy = Child(command, log_file=folder / "toxiproxy.log")
    try:
        proxies = [
            {
                "name": f"kafka{number}",
                "listen": f"127.0.0.1:{port}",
                "upstream": brokers.addresses[number],
                "enabled": True,
            }
            for number, port in ports.items()
        ]
        if not wait_until_true(lambda: _populated(proxies), 20):
            raise RuntimeError(f"Toxiproxy did not start:\n{proxy.tail()}")
        yield
    finally:
        proxy.kill()


def _populated(proxies: Sequence[Mapping[str, object]]) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", _API_PORT, timeout=5)
    try:
        connection.request("POST", "/populate", json.dumps(proxies))
        return connection.getresponse().status == http.client.CREATED
    except OSError:
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def _orders(brokers: Brokers, folder: Path) -> Iterator[str]:
    """Take what `docker.py` is asked for; yield the path of the socket."""
    path = str(folder / "orders")
    with Listener(path, family="AF_UNIX") as listener:

        def serve() -> None:
            while True:
                with listener.accept() as connection:
                    words = connection.recv()
                    if words is None:
                        return
                    connection.send(_obey(brokers, words))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield path
        finally:
            with Client(path, family="AF_UNIX") as connection:
                connection.send(None)
            thread.join()


def _obey(brokers: Brokers, words: Sequence[str]) -> tuple[int, str]:
    """Do what `docker compose` is to do; return its exit code and what it prints."""
    numbers = [int(word.removeprefix("kafka-")) for word in words if word.startswith("kafka-")]
    if "stop" in words:
        for number in numbers:
            brokers.stop(number)
    elif "start" in words:
        for number in numbers:
            brokers.start(number)
    elif "logs" in words:
        return 0, "".join(brokers.log_text(number) for number in numbers)
    return 0, ""
