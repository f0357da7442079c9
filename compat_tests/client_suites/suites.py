"""The suites, and why single tests of them do not pass at both brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: By suite and test: what docs/compatibility.md says of one that fails, or differs.
SUITES: Mapping[str, Mapping[str, str]] = {
    "sarama": {"TestReadOnlyAndAllCommittedMessages": "its author has it skipped"},
    "librdkafka": {},
}
