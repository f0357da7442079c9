"""Settings of topics out of the metadata log of Apache Kafka (KRaft mode).

A data directory that Kafka wrote holds its topics as directories, and what was set for them in the
log `__cluster_metadata-0`. Without that a compacted topic would be taken for one whose old records
may be deleted.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.meta.changes import TOPIC_RESOURCE
from kafkalite.meta.names import CLUSTER_METADATA_TOPIC
from kafkalite.settings.config_def import SettingError, parse_value
from kafkalite.settings.registry import TOPIC
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.records import iterate_batches, iterate_records

if TYPE_CHECKING:
    from kafkalite.log.disk import Disk

logger = logging.getLogger("kafkalite.meta")

DIRECTORY = f"{CLUSTER_METADATA_TOPIC}-0"

_TOPIC_RECORD = 2
_CONFIG_RECORD = 4
_REMOVE_TOPIC_RECORD = 9
_PRODUCER_IDS_RECORD = 15
_KNOWN_VERSION = 0


@dataclass(slots=True, kw_only=True)
class KraftMetadata:
    """Metadata taken over from Kafka's metadata log.

    Attributes:
        topic_configs: settings by topic name and setting.
        next_producer_id: first producer id that Kafka had not given to any broker.
    """

    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0


def read_kraft_metadata(disk: "Disk", directory: str) -> KraftMetadata:
    """Return what the metadata log in a log directory says; nothing if there is none.

    A log that cannot be read to its end is read as far as it goes, with a warning.
    """
    path = f"{directory}/{DIRECTORY}"
    try:
        names = [entry.name for entry in disk.list(path)]
    except FileNotFoundError:
        return KraftMetadata()
    segments = sorted(name for name in names if name.endswith(".log"))
    snapshots = sorted(name for name in names if name.endswith(".checkpoint"))
    first_offset = int(segments[0].partition(".")[0]) if segments else 0
    reader = _Reader()
    try:
        # A snapshot stands for all records before the offset in its name, and is needed only
        # where the log does not reach back to the beginning.
        if snapshots and (first_offset or not segments):
            reader.read(disk.read(f"{path}/{snapshots[-1]}"))
            reader.next_offset = int(snapshots[-1].partition("-")[0])
        for name in segments:
            reader.read(disk.read(f"{path}/{name}"), skip=True)
    except (OSError, KafkaError, ValueError, IndexError) as error:
        logger.warning("%s is not read to its end: %s", path, error)
    return reader.metadata()


class _Reader:
    """Replays the records that matter, and passes over all others."""

    def __init__(self) -> None:
        self.next_offset = 0
        self._names: dict[UUID, str] = {}
        self._configs: dict[str, dict[str, str]] = {}
        self._next_producer_id = 0

    def read(self, data: bytes, *, skip: bool = False) -> None:
        """Replay the batches of a file; with `skip` only those from `next_offset` on."""
        view = memoryview(data)
        for position, header in iterate_batches(view):
            if header.is_control or (skip and header.next_offset <= self.next_offset):
                continue
            for record in iterate_records(view[position : position + header.size]):
                if record.value is not None:
                    self._replay(record.value)

    def metadata(self) -> KraftMetadata:
        """Return what was read, without settings that mean nothing here."""
        known = {name: _known(name, configs) for name, configs in self._configs.items()}
        return KraftMetadata(
            topic_configs={name: configs for name, configs in known.items() if configs},
            next_producer_id=self._next_producer_id,
        )

    def _replay(self, value: bytes) -> None:
        fields = _Fields(value)
        fields.varint()  # version of the frame
        key, version = fields.varint(), fields.varint()
        if version > _KNOWN_VERSION:
            return
        match key:
            case t if t == _TOPIC_RECORD:
                name = fields.text() or ""
                self._names[fields.uuid()] = name
                self._configs[name] = {}
            case t if t == _REMOVE_TOPIC_RECORD:
                self._configs.pop(self._names.pop(fields.uuid(), ""), None)
            case t if t == _PRODUCER_IDS_RECORD:
                fields.number(4)  # broker id
                fields.number(8)  # broker epoch
                self._next_producer_id = fields.number(8)
            case t if t == _CONFIG_RECORD and fields.number(1) == TOPIC_RESOURCE:
                self._set(fields.text() or "", fields.text() or "", fields.text())
            case _:
                pass

    def _set(self, topic: str, name: str, value: str | None) -> None:
        configs = self._configs.setdefault(topic, {})
        if value is None:
            configs.pop(name, None)
        else:
            configs[name] = value


class _Fields:
    """Reads fields of a flexible message one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big", signed=True)

    def uuid(self) -> UUID:
        return UUID(bytes=self._take(16))

    def text(self) -> str | None:
        length = self.varint()
        return self._take(length - 1).decode() if length else None

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise ValueError("a metadata record ends too early")
        taken = bytes(self._data[self._position : end])
        self._position = end
        return taken


def _known(topic: str, configs: dict[str, str]) -> dict[str, str]:
    known = {}
    for name, text in configs.items():
        setting = TOPIC.get(name)
        try:
            if setting is None:
                raise SettingError(f"{name}: unknown")
            parse_value(setting, text)
        except SettingError as error:
            logger.warning("setting of topic %s is not taken over: %s", topic, error)
        else:
            known[name] = text
    return known


def merge(parts: Iterable[KraftMetadata]) -> KraftMetadata:
    """Return what several log directories say together; one of them has the log."""
    merged = KraftMetadata()
    for part in parts:
        merged.topic_configs.update(part.topic_configs)
        merged.next_producer_id = max(merged.next_producer_id, part.next_producer_id)
    return merged
