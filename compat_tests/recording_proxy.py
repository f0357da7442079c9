"""A TCP proxy that notes which API versions a client sends; used to write the FINDINGS files.

``python -m compat_tests.recording_proxy`` runs every scenario of every client through it and prints
the versions per client. The broker has to advertise the proxy's port, or clients go around it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Self

import pytest

from compat_tests.apache_kafka import KAFKA_4, ApacheBroker
from compat_tests.clients import all_clients, trusted_client
from compat_tests.scenarios import SCENARIOS, Bench

if TYPE_CHECKING:
    from compat_tests.clients import Client
    from compat_tests.driver import Driver

#: The client id of the driver that sets scenes; what it sends is not the client's under test.
HELPER_CLIENT_ID = "compat-helper"

#: What Apache's broker sends to itself for transactions, through the proxy.
BROKER_CLIENT_IDS = (b"broker-", b"AddPartitionsManager")

API_NAMES = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    35: "DescribeLogDirs",
    37: "CreatePartitions",
    42: "DeleteGroups",
    44: "IncrementalAlterConfigs",
    47: "OffsetDelete",
    60: "DescribeCluster",
    61: "DescribeProducers",
    65: "DescribeTransactions",
    66: "ListTransactions",
    69: "ConsumerGroupDescribe",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    75: "DescribeTopicPartitions",
}


class RecordingProxy:
    """Listens on a free port and passes everything on to a broker, which may be named later."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[int, int]] = Counter()
        self.upstream = ("", 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self.upstream)
                for connection in (client, broker):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                up = threading.Thread(target=self._pump, args=(client, broker, True), daemon=True)
                down = threading.Thread(
                    target=self._pump, args=(broker, client, False), daemon=True
                )
                up.start()
                down.start()

    def _pump(self, source: socket.socket, target: socket.socket, requests: bool) -> None:
        frames = _Frames(self.seen)
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                if requests:
                    frames.feed(chunk)
                target.sendall(chunk)
        for connection in (source, target):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR if connection is target else socket.SHUT_RD)


class _Frames:
    """Finds the frames in a stream of requests and counts their API keys and versions."""

    def __init__(self, seen: Counter[tuple[int, int]]) -> None:
        self.seen = seen
        self.buffer = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take in what the client sent next."""
        self.buffer += chunk
        while len(self.buffer) >= 4:
            (size,) = struct.unpack_from(">i", self.buffer)
            if len(self.buffer) < 4 + size:
                return
            api_key, version, _, id_size = struct.unpack_from(">hhih", self.buffer, 4)
            client_id = bytes(self.buffer[14 : 14 + max(id_size, 0)])
            if client_id != HELPER_CLIENT_ID.encode() and not client_id.startswith(
                BROKER_CLIENT_IDS
            ):
                self.seen[api_key, version] += 1
            del self.buffer[: 4 + size]


def versions_by_api(seen: Counter[tuple[int, int]]) -> str:
    """Return a line for each API with the versions that were sent."""
    by_api: dict[int, set[int]] = {}
    for api_key, version in seen:
        by_api.setdefault(api_key, set()).add(version)
    return "\n".join(
        f"| {API_NAMES.get(api_key, api_key)} ({api_key}) | "
        f"{', '.join(str(version) for version in sorted(versions))} |"
        for api_key, versions in sorted(by_api.items())
    )


def main(names: list[str]) -> None:
    """Print what each client (all, or those whose id starts with a name) sends."""
    with RecordingProxy() as proxy, ApacheBroker(KAFKA_4, advertised_port=proxy.port) as broker:
        proxy.upstream = ("127.0.0.1", broker.port)
        clients = all_clients()
        trusted = trusted_client()
        os.environ["KAFKALITE_COMPAT_CLIENT_ID"] = HELPER_CLIENT_ID
        helper = trusted.start(proxy.bootstrap)
        del os.environ["KAFKALITE_COMPAT_CLIENT_ID"]
        with contextlib.closing(helper):
            for client in clients:
                if not names or client.id.startswith(tuple(names)):
                    _record(proxy, helper, client)


def _record(proxy: RecordingProxy, helper: Driver, client: Client) -> None:
    proxy.seen.clear()
    with contextlib.closing(client.start(proxy.bootstrap)) as driver:
        for scenario in SCENARIOS:
            several_clients = (
                scenario.id.startswith("cross_client") or "group:mixed" in scenario.needs
            )
            if several_clients or client.reason_against(scenario.needs) is not None:
                continue
            bench = Bench(client, driver, helper, proxy.bootstrap, lambda _: driver)
            try:
                scenario.run(bench)
            # The other scenarios are still of use.
            except (Exception, pytest.fail.Exception) as problem:
                print(f"{scenario.id} failed: {problem!r:.200}", file=sys.stderr)
            finally:
                bench.close()
    print(f"## {client.id}\n\n| API | versions sent |\n| --- | --- |")
    print(versions_by_api(proxy.seen), end="\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
