"""Which classes there are, and which cannot run with a broker outside their Java machine."""

from __future__ import annotations

import re
import struct
import zipfile
from pathlib import Path

from compat_tests.apache_suite.jars import SUITES, suite_jar

_REASONS = Path(__file__).parent / "not_applicable.tsv"

#: A class that starts brokers names one of these, or has the last among its superclasses.
_CLUSTER_MAKERS = (
    b"org/apache/kafka/common/test/ClusterInstance",
    b"org/apache/kafka/common/test/KafkaClusterTestKit",
    b"org/apache/kafka/streams/integration/utils/EmbeddedKafkaCluster",
)
_HARNESS = "kafka/server/QuorumTestHarness"

_TEST_CLASS = re.compile(r"[^$]+Test\.class$")
_ABSTRACT = 0x0400
#: How many bytes follow the tag of an entry of a class file's constants, by the tag.
_CONSTANTS = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 15: 3, 16: 2, 19: 2, 20: 2} | dict.fromkeys(
    (9, 10, 11, 12, 17, 18), 4
)


def integration_classes(suite: str) -> list[str]:
    """Return the names of a suite's test classes that start brokers, sorted."""
    found, superclasses = [], {}
    with zipfile.ZipFile(suite_jar(suite)) as jar:
        names = [entry for entry in jar.namelist() if entry.endswith(".class")]
        classes = {entry.removesuffix(".class"): jar.read(entry) for entry in names}
    for name, content in classes.items():
        is_abstract, superclasses[name] = _header(content)
        if _TEST_CLASS.match(f"{name}.class") and not is_abstract:
            found.append(name)

    def starts_brokers(name: str) -> bool:
        if any(maker in classes[name] for maker in _CLUSTER_MAKERS):
            return True
        above = superclasses[name]
        return above == _HARNESS or (above in classes and starts_brokers(above))

    return sorted(name.replace("/", ".") for name in found if starts_brokers(name))


def _header(content: bytes) -> tuple[bool, str]:
    """Return whether a class file's class is abstract, and the name of its superclass."""
    (count,) = struct.unpack_from(">H", content, 8)
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    position, index = 10, 1
    while index < count:
        tag = content[position]
        position += 1
        if tag == 1:
            (size,) = struct.unpack_from(">H", content, position)
            texts[index] = content[position + 2 : position + 2 + size].decode(errors="replace")
            position += 2 + size
        else:
            if tag == 7:
                (classes[index],) = struct.unpack_from(">H", content, position)
            position += _CONSTANTS[tag]
        index += 2 if tag in (5, 6) else 1
    flags, _, superclass = struct.unpack_from(">HHH", content, position)
    return bool(flags & _ABSTRACT), texts[classes[superclass]]


def all_classes() -> dict[str, str]:
    """Return the suite of each class of all suites."""
    return {name: suite for suite in SUITES for name in integration_classes(suite)}


def known_reasons() -> dict[str, str]:
    """Return why classes (`package.Class`) and methods (`package.Class#method`) are not started."""
    if not _REASONS.exists():
        return {}
    rows = (line.split("\t") for line in _REASONS.read_text().splitlines() if line)
    return {name: reason for name, reason in rows}  # noqa: C416 (names say what they are)
