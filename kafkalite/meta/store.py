"""Where metadata is kept: the interface, of which `meta/local.py` is one form."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kafkalite.meta.changes import Change
from kafkalite.meta.image import Image


class Stored(NamedTuple):
    """What a store holds: changes that make the image, and the version that it then has."""

    version: int
    changes: Sequence[Change]


class MetadataStore(Protocol):
    """Keeps commits in order, each whole or not at all."""

    def load(self) -> Stored:
        """Return what was committed. Called once, first.

        Raises:
            MetadataStoreError: what is stored cannot be read.
        """
        ...

    async def commit(self, version: int, changes: Sequence[Change]) -> None:
        """Return when these changes would survive a crash; if cancelled, nothing was committed.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, and nothing was committed.
        """
        ...

    async def sum_up(self, image: Image) -> None:
        """Replace the history by the image if that is due; a failure leaves the history."""
        ...

    def close(self) -> None:
        """Give back what is held open."""
        ...


class MetadataStoreError(Exception):
    """Metadata that cannot be read; the message is one line and says where they are."""
