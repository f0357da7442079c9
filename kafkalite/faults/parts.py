"""What a test may turn in one broker: its fault rules, its clock, its disk."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """

    def __init__(
        self,
        image: "Callable[[], Image]",
        dispatcher: "Callable[[], Dispatcher]",
        clock: "Clock",
        disk: "Disk",
        *,
        is_allowed: bool,
    ) -> None:
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
