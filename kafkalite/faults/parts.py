"""Parts of one broker that a test may change: fault rules, clock, disk."""

from typing import TYPE_CHECKING

from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kafkalite.clock import Clock
    from kafkalite.faults.injector import Injector
    from kafkalite.log.disk import Disk
    from kafkalite.meta.image import Image
    from kafkalite.network.dispatch import Dispatcher


class Control:
    """Fault rules, clock and disk of one broker, for whoever may change them.

    Args:
        image: gives the metadata of now.
        dispatcher: gives the dispatcher that rules act on.
        clock: adjustable, or what nobody can change.
        disk: faulty, or what nobody can change.
        is_allowed: over HTTP (`kafkalite.control`).
        peers: HTTP addresses of the brokers that orders may be for (`kafkalite.control.peers`).
    """

    def __init__(
        self,
        image: "Callable[[], Image]",
        dispatcher: "Callable[[], Dispatcher]",
        clock: "Clock",
        disk: "Disk",
        *,
        is_allowed: bool,
        peers: "Mapping[int, str]",
    ) -> None:
        self.peers = peers
        self.clock = clock
        self.disk = disk
        self.is_allowed = is_allowed
        self._image = image
        self._dispatcher = dispatcher
        self._injector: Injector | None = None

    @property
    def injector(self) -> "Injector":
        """The fault rules, which are made when they are first asked for."""
        if self._injector is None:
            # A broker without faults starts without their code.
            from kafkalite.faults.injector import Injector

            self._injector = Injector(self._image, self.clock.monotonic_ms)
            self._injector.attach(self._dispatcher())
        return self._injector


def parse_peers(entries: "Iterable[str]") -> dict[int, str]:
    """Return HTTP addresses by broker id, of `1=http://127.0.0.1:9081` and so on.

    Raises:
        SettingError: one of them is no such thing.
    """
    peers = {}
    for entry in entries:
        number, equals, url = entry.strip().partition("=")
        if not equals or not number.isdigit() or not url.startswith("http://"):
            raise SettingError(
                f"kafkalite.control.peers: {entry!r} is no ID=URL, such as 1=http://127.0.0.1:9081"
            )
        peers[int(number)] = url
    return peers
