"""Facts that wait for the controller's loop, and the signal that wakes it."""

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkalite.meta.image import BrokerImage
    from kafkalite.meta.store import ReadOthers, Requests


class ControllerInbox:
    """Written by those who follow the store and commit, read by the loop.

    Attributes:
        live: the brokers that have a session, None while this broker is not told.
        read_others: returns what others wrote into the store, None while there is nothing.
        requests: which others make by nodes of the store, None while there are none.
    """

    def __init__(self) -> None:
        self.live: Mapping[int, BrokerImage] | None = None
        self.read_others: ReadOthers | None = None
        self.requests: Requests | None = None
        self._woken = trio.Event()

    def wake(self) -> None:
        """Have the loop compare again."""
        self._woken.set()

    async def wait(self) -> None:
        """Return when somebody has called `wake` since the last return."""
        await self._woken.wait()
        self._woken = trio.Event()
