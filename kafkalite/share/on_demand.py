"""The share service of a broker, made when somebody uses share groups (decision 0134)."""

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkalite.group.effects import InitializeStates
    from kafkalite.share.effects import PruneLog
    from kafkalite.share.service import ShareService


class ShareOnDemand:
    """Makes the service when it is first asked for.

    Attributes:
        made: the service, None before.
    """

    def __init__(self, make: "Callable[[], ShareService]") -> None:
        self._make = make
        self._is_made = trio.Event()
        self.made: ShareService | None = None

    @property
    def service(self) -> "ShareService":
        """The service, which is made if it was not yet."""
        if self.made is None:
            self.made = self._make()
            self._is_made.set()
        return self.made

    def perform(self, effect: "PruneLog | InitializeStates") -> None:
        """Have the service take over an effect."""
        self.service.perform(effect)

    async def run(self) -> None:
        """Run the service once there is one, until cancelled."""
        await self._is_made.wait()
        await self.service.run()
