"""The list of scenarios, and the bench that each is given."""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.broker import is_kafkalite
from compat_tests.clients import Client, all_clients
from compat_tests.driver import ClientError
from kafkalite.client.cluster import Client as BrokerClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compat_tests.driver import Driver, Member


@dataclass(slots=True)
class Bench:
    """What a scenario works with: the client under test, helpers, and fresh names.

    ``helper`` is a driver of another, trusted client; it makes topics and looks at groups where the
    scenario is not about that. ``driver_of`` gives the running driver of any client.
    """

    client: Client
    driver: Driver
    helper: Driver
    bootstrap: str
    driver_of: Callable[[Client], Driver]
    _members: list[Member] = field(default_factory=list)

    @property
    def against_oracle(self) -> bool:
        """Whether what an answer says was done is so everywhere only a moment later.

        That is Apache Kafka, also with one broker, and any cluster of several brokers.
        """
        return not is_kafkalite() or "," in self.bootstrap

    def topic(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """Create a topic of a fresh name through the helper."""
        name = self.name()
        addresses = self.bootstrap.split(",")
        self.helper.call(
            "create_topic",
            topic=name,
            partitions=partitions,
            replication_factor=min(3, len(addresses)),
            configs=configs or {},
        )
        wait_until(lambda: self.has_topic(name))
        if len(addresses) > 1:
            self.wait_partitions(name, partitions)
        return name

    def wait_partitions(self, topic: str, count: int) -> None:
        """Return when every broker knows so many partitions of a topic.

        Those that did not answer the request learn of it a moment later, also Apache's.
        """
        for address in self.bootstrap.split(","):
            wait_until(lambda address=address: known_partitions(address, topic) == count)

    def has_topic(self, name: str) -> bool:
        """Tell whether the helper is told of this topic."""
        try:
            self.helper.call("describe_topic", topic=name)
        except ClientError as error:
            if error.code != "UNKNOWN_TOPIC_OR_PARTITION":
                raise
            return False
        return True

    def name(self) -> str:
        """Return a name that nothing has."""
        return f"{self.client.id.replace('_', '-').lower()}-{uuid.uuid4().hex[:10]}"

    def member(self, group: str, *topics: str, driver: Driver | None = None, **how: Any) -> Member:
        """Open a group member of the client under test; closed at the end if still open."""
        name = f"member-{uuid.uuid4().hex[:8]}"
        opened = (driver or self.driver).open_member(name, group, topics, **how)
        self._members.append(opened)
        return opened

    def other_client(self, name: str) -> Client:
        """Return the newest client of this name."""
        return next(client for client in all_clients() if client.name == name)

    def close(self) -> None:
        """Close the members that a scenario left open."""
        for member in self._members:
            member.close()


def known_partitions(address: str, topic: str) -> int:
    """Return how many partitions of a topic one broker knows; none of a topic it does not know."""
    with BrokerClient(address) as client:
        return len(client.fetch_metadata([topic]).topics[0].partitions)


def wait_until(condition: Callable[[], bool], timeout: float = 10.0) -> None:
    """Ask again until it holds; for what Apache's brokers do a moment after they answered."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "did not come true"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One row of the matrix."""

    id: str
    title: str
    needs: tuple[str, ...]
    run: Callable[[Bench], None]


SCENARIOS: list[Scenario] = []


def scenario(
    title: str, *needs: str, **arguments: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a scenario; may be put several times with different arguments.

    Args:
        title: what the matrix calls it.
        needs: the features that a client must have for it.
        arguments: keyword arguments for the function.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        module = function.__module__.rpartition(".")[2]
        slug = "-".join(re.findall(r"\w+", title.lower().replace("'", "")))

        def run(bench: Bench) -> None:
            function(bench, **arguments)

        new = Scenario(id=f"{module}:{slug}", title=title, needs=needs, run=run)
        assert all(new.title != other.title for other in SCENARIOS), title
        SCENARIOS.append(new)
        return function

    return register
