"""The metadata that this broker knows, and who is told when they change."""

from collections.abc import Callable, Sequence

import trio

from kafkalite.meta.changes import Change
from kafkalite.meta.image import Image

Subscriber = Callable[[Sequence[Change], Image], None]


class MetadataCache:
    """Holds the image, and tells of each next one.

    Attributes:
        image: metadata as they are now.
    """

    def __init__(self, image: Image) -> None:
        self.image = image
        self._subscribers: list[Subscriber] = []
        self._changed = trio.Event()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(changes, image)` after each commit, before who asked for it goes on.

        Without changes, only the controller is another. Returns a function that ends this.
        """
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    async def wait_until(self, predicate: Callable[[Image], bool]) -> Image:
        """Return the first image, beginning with the present one, that satisfies a predicate.

        It waits as long as that takes: who calls knows what to do after some time.
        """
        while not predicate(self.image):
            await self._changed.wait()
        return self.image

    def publish(self, image: Image, changes: Sequence[Change]) -> None:
        """Replace the image, and tell all subscribers in their order before this returns."""
        self.image = image
        for subscriber in tuple(self._subscribers):
            subscriber(changes, image)
        self._changed.set()
        self._changed = trio.Event()
