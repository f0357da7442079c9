"""How this broker asks other brokers: what everything that needs an answer from one takes.

Interfaces only. `peers/clients.py` satisfies them over a network, simulations and tests with less.

The channels to a broker: "control" (what is answered at once), "controller" and "isr" (what this
broker asks of the controller), "forwarding" (what its clients do), "fetch" (of a follower), "txn"
(questions about transactions) and "markers".
"""

from typing import Protocol, TypeVar

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

Request = TypeVar("Request", bound=Structure)
Response = TypeVar("Response", bound=Structure)

CONTROL_CHANNEL = "control"
"""The channel of what is answered at once. A request that the other broker may let wait, such as a
Fetch, takes a channel of its own: a channel is served strictly in order."""


class Peers(Protocol):
    """The other brokers of the cluster, by their ids."""

    async def request(
        self,
        broker_id: int,
        api: Api[Request, Response],
        message: Request,
        *,
        timeout_ms: int,
        channel: str = CONTROL_CHANNEL,
    ) -> Response:
        """Ask a broker and return its answer; whoever asks on the same channel waits for its turn.

        Records in the answer are slices of memory of its own, and stay valid.

        Args:
            broker_id: whom to ask; may be this broker itself.
            api: what to ask; the highest version that both sides know is taken.
            message: the request.
            timeout_ms: the most that waiting for the turn, connecting and the answer may take.
            channel: requests of one channel to one broker share a connection, one at a time.

        Raises:
            KafkaError: BROKER_NOT_AVAILABLE, the metadata knows no such broker or no way to it;
                NETWORK_EXCEPTION, it cannot be reached, closed the connection, answered what
                cannot be read, or did not answer in time: the request may have been carried out;
                UNSUPPORTED_VERSION, no version of `api` is known to both sides.
        """
        ...


class ControllerChannel(Protocol):
    """The broker that is the controller now, whichever it is; also this broker itself."""

    async def request(
        self, api: Api[Request, Response], message: Request, *, timeout_ms: int
    ) -> Response:
        """Ask the controller; ask again, and another one, until it answered or time is up.

        An answer whose top-level error is NOT_CONTROLLER is asked for again. A request may thus be
        carried out twice, which those between brokers stand.

        Raises:
            KafkaError: REQUEST_TIMED_OUT or what was wrong last (NOT_CONTROLLER,
                NETWORK_EXCEPTION, BROKER_NOT_AVAILABLE); UNSUPPORTED_VERSION at once.
        """
        ...
