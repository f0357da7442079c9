"""Which classes there are, and which cannot run with a broker outside their Java machine."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from compat_tests.apache_suite.jars import SUITES, suite_jar

_REASONS = Path(__file__).parent / "not_applicable.tsv"

#: A class that starts brokers names one of these.
_CLUSTER_MAKERS = (
    b"org/apache/kafka/common/test/ClusterInstance",
    b"org/apache/kafka/common/test/KafkaClusterTestKit",
    b"org/apache/kafka/streams/integration/utils/EmbeddedKafkaCluster",
)
_TEST_CLASS = re.compile(r"((?:\w+/)+(?!Abstract)\w+(?<!BaseRequest)Test)\.class$")


def integration_classes(suite: str) -> list[str]:
    """Return the names of a suite's test classes that start brokers, sorted."""
    found = []
    with zipfile.ZipFile(suite_jar(suite)) as jar:
        for entry in jar.namelist():
            match = _TEST_CLASS.match(entry)
            if match and any(maker in jar.read(entry) for maker in _CLUSTER_MAKERS):
                found.append(match[1].replace("/", "."))
    return sorted(found)


def all_classes() -> dict[str, str]:
    """Return the suite of each class of all suites."""
    return {name: suite for suite in SUITES for name in integration_classes(suite)}


def known_reasons() -> dict[str, str]:
    """Return why classes (`package.Class`) and methods (`package.Class#method`) are not started."""
    if not _REASONS.exists():
        return {}
    rows = (line.split("\t") for line in _REASONS.read_text().splitlines() if line)
    return {name: reason for name, reason in rows}  # noqa: C416 (names say what they are)
