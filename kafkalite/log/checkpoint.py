"""The small text files beside the logs, in Kafka's formats.

- `recovery-point-offset-checkpoint`, `replication-offset-checkpoint`,
  `log-start-offset-checkpoint`, `cleaner-offset-checkpoint`: an offset per partition, one file per
  log directory;
- `leader-epoch-checkpoint`: epochs and start offsets, one file per partition;
- `partition.metadata`: the topic id of a partition's directory;
- `meta.properties`: which broker of which cluster owns a log directory.

`format_*` and `parse_*` are pure; `read_*` and `write_*` go through `Disk`, where a file changes
all at once. Parsing raises ValueError with a sentence for the operator; who reads knows the path.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafkalite.log.leader_epochs import EpochStart
from kafkalite.types import TopicPartition

if TYPE_CHECKING:
    from kafkalite.log.disk import Disk

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
CLEANER_FILE: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE: Final = "partition.metadata"
META_PROPERTIES_FILE: Final = "meta.properties"

_VERSION: Final = "0"
_TO_ESCAPE: Final = re.compile(r"[\\=:#!\t\n\f\r]")
_ESCAPED: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_SEPARATOR: Final = re.compile(r"(?<!\\)(?:\\\\)*(\s*[=:]\s*|\s+)")


# --- Offsets of partitions -----------------------------------------------------------------------


def format_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """Return the text of an offset checkpoint: version, number of entries, the entries."""
    return _format_entries(
        f"{partition.topic} {partition.partition} {offset}" for partition, offset in offsets.items()
    )


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Return the offsets of an offset checkpoint; none for an empty file.

    Raises:
        ValueError: it is no such file, or not whole.
    """
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partition, offset in _parse_entries(text, 3)
    }


def read_offsets(disk: "Disk", path: str) -> dict[TopicPartition, int]:
    """Return the offsets of the checkpoint at `path`; none without file. Raises ValueError."""
    return parse_offsets(_read(disk, path))


def write_offsets(
    disk: "Disk", path: str, offsets: Mapping[TopicPartition, int], *, sync: bool = True
) -> None:
    """Replace the checkpoint at `path`."""
    disk.replace(path, format_offsets(offsets).encode(), sync=sync)


# --- Leader epochs -------------------------------------------------------------------------------


def format_epochs(entries: Iterable[EpochStart]) -> str:
    """Return the text of a `leader-epoch-checkpoint`."""
    return _format_entries(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def parse_epochs(text: str) -> list[EpochStart]:
    """Return the entries of a `leader-epoch-checkpoint`; none for an empty file.

    Raises:
        ValueError: it is no such file, or not whole.
    """
    return [EpochStart(int(epoch), int(offset)) for epoch, offset in _parse_entries(text, 2)]


def read_epochs(disk: "Disk", path: str) -> list[EpochStart]:
    """Return the epochs of the checkpoint at `path`; none without file. Raises ValueError."""
    return parse_epochs(_read(disk, path))


def write_epochs(
    disk: "Disk", path: str, entries: Iterable[EpochStart], *, sync: bool = True
) -> None:
    """Replace the checkpoint at `path`."""
    disk.replace(path, format_epochs(entries).encode(), sync=sync)


# --- Topic ids -----------------------------------------------------------------------------------


def format_uuid(uuid: UUID) -> str:
    """Return a uuid in Kafka's text form: 22 characters of URL-safe base64, without padding."""
    return urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def parse_uuid(text: str) -> UUID:
    """Return the uuid of Kafka's text form. Raises ValueError."""
    decoded = urlsafe_b64decode(text + "==")
    if len(decoded) != 16:
        raise ValueError(f"{text!r} is no uuid of 22 characters")
    return UUID(bytes=decoded)


def format_partition_metadata(topic_id: UUID) -> str:
    """Return the text of a `partition.metadata`."""
    return f"version: {_VERSION}\ntopic_id: {format_uuid(topic_id)}"


def parse_partition_metadata(text: str) -> UUID:
    """Return the topic id of a `partition.metadata`.

    Raises:
        ValueError: it is no such file.
    """
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if fields.get("version") != _VERSION or "topic_id" not in fields:
        raise ValueError(f"partition metadata without version {_VERSION} and topic id: {text!r}")
    return parse_uuid(fields["topic_id"].strip())


def read_partition_metadata(disk: "Disk", path: str) -> UUID | None:
    """Return the topic id of the file at `path`; None if there is no file. Raises ValueError."""
    text = _read(disk, path)
    return parse_partition_metadata(text) if text else None


def write_partition_metadata(disk: "Disk", path: str, topic_id: UUID, *, sync: bool = True) -> None:
    """Replace the file at `path`."""
    disk.replace(path, format_partition_metadata(topic_id).encode(), sync=sync)


# --- Properties ----------------------------------------------------------------------------------


def format_properties(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file, such as `meta.properties`."""
    return "".join(
        f"{_escape(name, is_key=True)}={_escape(value, is_key=False)}\n"
        for name, value in properties.items()
    )


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties of a Java properties file (one line each)."""
    properties = {}
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        separator = _SEPARATOR.search(stripped)
        if separator is None:
            properties[_unescape(stripped)] = ""
        else:
            name, value = stripped[: separator.start(1)], stripped[separator.end(1) :]
            properties[_unescape(name)] = _unescape(value)
    return properties


def read_properties(disk: "Disk", path: str) -> dict[str, str]:
    """Return the properties of the file at `path`; none if there is no file."""
    return parse_properties(_read(disk, path))


def write_properties(
    disk: "Disk", path: str, properties: Mapping[str, str], *, sync: bool = True
) -> None:
    """Replace the file at `path`."""
    disk.replace(path, format_properties(properties).encode(), sync=sync)


# --- Inside --------------------------------------------------------------------------------------


def _read(disk: "Disk", path: str) -> str:
    try:
        return disk.read(path).decode()
    except FileNotFoundError:
        return ""


def _format_entries(entries: Iterable[str]) -> str:
    lines = list(entries)
    return "\n".join((_VERSION, str(len(lines)), *lines, ""))


def _parse_entries(text: str, field_count: int) -> list[list[str]]:
    lines = text.splitlines()
    if len(lines) < 2:
        return []  # Kafka creates the file empty
    if not text.endswith("\n"):
        raise ValueError("checkpoint is cut off")  # perhaps within a number
    version, count, *rest = lines
    if version != _VERSION:
        raise ValueError(f"checkpoint of version {version} instead of {_VERSION}")
    entries = [line.split() for line in rest]
    for line, entry in zip(rest, entries, strict=True):
        if len(entry) != field_count:
            raise ValueError(f"checkpoint line {line!r} has not {field_count} fields")
    if len(entries) != int(count):
        raise ValueError(f"checkpoint has {len(entries)} entries instead of {count}")
    return entries


def _escape(text: str, *, is_key: bool) -> str:
    escaped = _TO_ESCAPE.sub(_escape_one, text)
    if is_key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape_one(match: re.Match[str]) -> str:
    character = match[0]
    for letter, meant in _ESCAPES.items():
        if meant == character:
            return "\\" + letter
    return "\\" + character


def _unescape(text: str) -> str:
    return _ESCAPED.sub(_unescape_one, text)


def _unescape_one(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)
