"""Counts about a broker's session with ZooKeeper, as Kafka 3.9's SessionExpireListener has them."""

from collections import deque
from time import perf_counter
from typing import Final

from kazoo.client import KazooState

LATENCIES_KEPT: Final = 1_000
"""Of the latest requests; about as many as the reservoir of Kafka's histograms has."""

CONNECTING: Final = "CONNECTING"


class Session:
    """State of the session, and what it has been through.

    Attributes:
        state: CONNECTING, CONNECTED or EXPIRED.
        connects: times that a connection was made.
        disconnects: times that it was lost; ZooKeeper may have kept the session.
        expires: times that ZooKeeper ended the session.
        request_count: requests that were answered; those sent together count as one.
        latency_sum_s: time from those requests to their answers.
        latencies_s: that of each of the latest.
    """

    def __init__(self) -> None:
        self.state = CONNECTING
        self.connects = self.disconnects = self.expires = 0
        self.request_count = 0
        self.latency_sum_s = 0.0
        self.latencies_s: deque[float] = deque(maxlen=LATENCIES_KEPT)

    def on_state(self, state: str) -> None:
        """Take up what kazoo tells of the connection."""
        if state == KazooState.CONNECTED:
            self.connects += 1
            self.state = "CONNECTED"
            return
        self.disconnects += self.state == "CONNECTED"
        self.expires += state == KazooState.LOST
        self.state = "EXPIRED" if state == KazooState.LOST else CONNECTING

    def on_answer(self, sent_s: float) -> None:
        """Count a request that was sent at this time of `perf_counter`."""
        latency_s = perf_counter() - sent_s
        self.request_count += 1
        self.latency_sum_s += latency_s
        self.latencies_s.append(latency_s)
