"""Keeps the broker processes of the tests: reads a line of JSON for each command, answers with one.

``{"do": "create", "zookeeper": true}`` answers ``{"cluster": 1}``; ``add`` takes this ``cluster``,
a ``broker`` and its ``settings``, ``start`` and ``stop`` the ``brokers``, ``close`` all of a
cluster. All ends when standard input does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from compat_tests.apache_suite.forked import ForkedBroker, import_broker
from kafkalite.testing.zookeeper import ZooKeeper

#: Kafka's test kit misses a dead broker after 9 seconds; ZooKeeper is told by the session.
_CLUSTER_SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "zookeeper.connection.timeout.ms": "18000",
}


class Clusters:
    """Clusters by number; those of several brokers share a ZooKeeper, with a root for each.

    Args:
        directory: for settings and logs of the brokers, kept.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._zookeeper: ZooKeeper | None = None
        self._clusters: dict[int, dict[int, ForkedBroker]] = {}
        self._settings: dict[int, dict[str, str]] = {}

    def create(self, request: dict[str, Any]) -> dict[str, Any]:
        """Begin a cluster, with a ZooKeeper if it may have several brokers."""
        number = len(self._clusters) + 1
        self._clusters[number] = {}
        self._settings[number] = {}
        if request["zookeeper"]:
            if self._zookeeper is None:
                self._zookeeper = ZooKeeper().start()
            root = {"zookeeper.connect": f"{self._zookeeper.connect}/{number}"}
            self._settings[number] = _CLUSTER_SETTINGS | root
        return {"cluster": number}

    def add(self, request: dict[str, Any]) -> dict[str, Any]:
        """Prepare a broker."""
        number, broker_id = request["cluster"], request["broker"]
        directory = self._directory / f"cluster-{number}"
        directory.mkdir(parents=True, exist_ok=True)
        self._clusters[number][broker_id] = ForkedBroker(
            broker_id,
            directory=directory,
            host="localhost",
            port=0,
            peer_port=0,
            settings=request["settings"] | self._settings[number],
        )
        return {}

    def start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start brokers at once; answer when all of them serve."""
        brokers = self._chosen(request)
        for broker in brokers:
            broker.launch()
        for broker in brokers:
            broker.wait_ready()
        return {}

    def stop(self, request: dict[str, Any]) -> dict[str, Any]:
        """Stop brokers in order."""
        for broker in self._chosen(request):
            broker.stop()
        return {}

    def close(self, request: dict[str, Any]) -> dict[str, Any]:
        """End the brokers of a cluster at once."""
        self._end(self._clusters[request["cluster"]])
        return {}

    def close_all(self) -> None:
        """End everything."""
        for cluster in self._clusters.values():
            self._end(cluster)
        if self._zookeeper is not None:
            self._zookeeper.close()

    def _chosen(self, request: dict[str, Any]) -> list[ForkedBroker]:
        return [self._clusters[request["cluster"]][number] for number in request["brokers"]]

    @staticmethod
    def _end(cluster: dict[int, ForkedBroker]) -> None:
        for broker in cluster.values():
            if broker.is_running:
                broker.kill()


def main() -> None:
    """Serve one program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    import_broker()
    clusters = Clusters(parser.parse_args().directory)
    names = ("create", "add", "start", "stop", "close")
    commands = {name: getattr(clusters, name) for name in names}
    try:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = commands[request["do"]](request)
            except Exception as error:  # the test is told, and goes on
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)
    finally:
        clusters.close_all()


if __name__ == "__main__":
    main()
