"""Logs of partitions that do not belong to a broker any more; those of deleted topics may wait."""

import logging
from itertools import islice
from typing import TYPE_CHECKING

from kafkalite.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkalite.log.manager import LogManager
    from kafkalite.types import TopicPartition

logger = logging.getLogger("kafkalite.isr")


class LeavingLogs:
    """Deletes logs, at once or some at a time: a topic may have had thousands."""

    def __init__(self, logs: "LogManager") -> None:
        self._logs = logs
        self._waiting: dict[TopicPartition, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: "TopicPartition") -> bool:
        return name in self._waiting

    def put_off(self, name: "TopicPartition") -> None:
        """Have `delete_some` delete a log."""
        self._waiting[name] = None

    def delete_some(self, count: int) -> None:
        """Delete some of those that wait."""
        for name in list(islice(self._waiting, count)):
            self.delete(name)

    def delete(self, name: "TopicPartition", *, is_stray: bool = False) -> None:
        """Delete a log, or keep it under another name."""
        self._waiting.pop(name, None)
        try:
            if is_stray:
                self._logs.rename_as_stray(name)
            else:
                self._logs.delete(name)
        except KafkaError as error:
            # It does not belong here all the same; its directory is dealt with at the next start.
            logger.error("%s: %s", name, error)
