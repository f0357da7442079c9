"""The part of `testing.Broker` that has other processes beside it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalite.server.broker import Broker as ServerBroker
    from kafkalite.testing.process_group import Followers


class FollowedBroker:
    """A broker that others may follow, each a process; see `process_group`."""

    _followers: "Followers | None" = None

    if TYPE_CHECKING:

        @property
        def server(self) -> ServerBroker:
            """The broker itself."""

    def _follow(self, count: int, settings: dict[str, str]) -> None:
        """Have so many follow; `settings` become those of a first process."""
        if count:
            # Other tests do without the import.
            from kafkalite.testing.process_group import Followers

            self._followers = Followers(count, settings)

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT`, for a client's `bootstrap.servers`; or those of all its processes."""
        followers = () if self._followers is None else (self._followers.bootstrap,)
        return ",".join((self.server.bootstrap, *followers))

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server.bootstrap.rpartition(":")[2])
