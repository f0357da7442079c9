"""A network namespace for each process of a cluster, and cuts made in the kernel (Linux, root).

Where `testing.proxy` passes bytes on or does not, here every process has a network of its own, with
a bridge between them: what is cut off is dropped without a word, acknowledgements too. Clients are
where the test is, at the bridge.
"""

import itertools
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, Self

_NAME: Final = re.compile(r"\bkl(\d+)x\d+-?\w*")
_NUMBERS: Final = itertools.count()

NOBODY: Final = "02:00:00:00:00:01"
"""The hardware address to which packets go that nobody is to get."""


class NamespaceError(Exception):
    """The system gives no namespaces; the message says why, in one line."""


class Namespaces:
    """The networks of some nodes, such as brokers; `with Namespaces(["1", "2"]) as networks:`.

    Args:
        nodes: their names; they get addresses in this order.
    """

    def __init__(self, nodes: Iterable[str]) -> None:
        self._nodes = tuple(nodes)
        self._name = f"kl{os.getpid()}x{next(_NUMBERS)}"
        self._cut: set[tuple[str, str]] = set()
        self._subnet = ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Make the networks.

        Raises:
            NamespaceError: the system does not allow it.
        """
        _remove_leftovers()
        self._subnet = _free_subnet()
        bridge = f"{self._name}b"
        try:
            _ip("link", "add", bridge, "type", "bridge")
            _ip("addr", "add", f"{self._subnet}.1/24", "dev", bridge)
            _ip("link", "set", bridge, "up")
            for node in self._nodes:
                self._add(node, bridge)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Remove them; nothing if there are none."""
        namespaces = [self._namespace(node) for node in self._nodes]
        for kind, name in (
            *(("link", each) for each in namespaces),
            *(("netns", each) for each in namespaces),
            ("link", f"{self._name}b"),
        ):
            with suppress(NamespaceError):
                _ip(kind, "del", name)

    def address(self, node: str) -> str:
        """Return where a node listens."""
        return f"{self._subnet}.{10 + self._nodes.index(node)}"

    def prefix(self, node: str) -> list[str]:
        """Return the words before a command that run it in a node's network."""
        return ["ip", "netns", "exec", self._namespace(node)]

    def cut(self, source: str, destination: str, *, both_ways: bool = True) -> None:
        """Drop what a node sends to another, and back if `both_ways`."""
        there = {(source, destination)}
        for one, other in there | {(destination, source)} if both_ways else there:
            self._neighbour(one, "replace", other, "lladdr", NOBODY, "nud", "permanent")
            self._cut.add((one, other))

    def heal(self, node: str | None = None) -> None:
        """End all cuts of a node, or of all nodes."""
        for direction in sorted(self._cut):
            if node is None or node in direction:
                self._neighbour(direction[0], "del", direction[1])
                self._cut.discard(direction)

    def disconnect(self, one: str, other: str) -> int:
        """Close the connections between two nodes; return how many. They may connect anew."""
        # ss closes one side of each, whose peer is told by a reset.
        command = [*self.prefix(one), "ss", "-H", "-K", "-t", "dst", self.address(other)]
        return len(_run(command).splitlines())

    def _add(self, node: str, bridge: str) -> None:
        namespace, inside = self._namespace(node), f"{self._name}i"
        _ip("netns", "add", namespace)
        _ip("link", "add", namespace, "type", "veth", "peer", "name", inside)
        _ip("link", "set", inside, "netns", namespace, "name", "eth0")
        _ip("link", "set", namespace, "master", bridge, "up")
        within = ("-n", namespace)
        _ip(*within, "addr", "add", f"{self.address(node)}/24", "dev", "eth0")
        _ip(*within, "link", "set", "eth0", "up")
        _ip(*within, "link", "set", "lo", "up")

    def _neighbour(self, node: str, action: str, other: str, *more: str) -> None:
        within = ("-n", self._namespace(node))
        _ip(*within, "neigh", action, self.address(other), "dev", "eth0", *more)

    def _namespace(self, node: str) -> str:
        return f"{self._name}-{self._nodes.index(node)}"  # 15 characters at most


def why_not() -> str | None:
    """Return why there are no namespaces here; None if there are."""
    try:
        with Namespaces(["1"]):
            return None
    except NamespaceError as error:
        return str(error)


def _ip(*words: str) -> str:
    return _run(["ip", *words])


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NamespaceError("network namespaces need ip and ss (Debian: iproute2)") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["failed"])[-1]
        raise NamespaceError(f"{' '.join(command)}: {reason}")
    return done.stdout


def _free_subnet() -> str:
    """Return the first three numbers of addresses that this machine has no others of."""
    taken = _ip("-o", "-4", "addr", "show")
    for number in range(256):
        subnet = f"10.213.{(os.getpid() + number) % 256}"
        if f" {subnet}." not in taken:
            return subnet
    raise NamespaceError("all of 10.213.0.0/16 is taken")


def _remove_leftovers() -> None:
    """Remove the networks of processes that are gone."""
    for command, kind in ((("netns", "list"), "netns"), (("-o", "link", "show"), "link")):
        for match in _NAME.finditer(_ip(*command)):
            if not os.path.exists(f"/proc/{match[1]}"):
                with suppress(NamespaceError):
                    _ip(kind, "del", match[0])
