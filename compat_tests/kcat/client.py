"""kcat, Debian's package."""

from __future__ import annotations

import re
import shutil
import sys

from compat_tests.clients import Client, Prepared, output_of
from compat_tests.driver import REPOSITORY
from compat_tests.toolchains import find_program


def prepare() -> Prepared:
    """Install the package if it is missing."""
    command = [sys.executable, "-m", "compat_tests.kcat.driver", find_program("kcat")]
    return command, {"PYTHONPATH": str(REPOSITORY)}


def installed_version() -> str:
    """Return the version on this machine; Debian 12's if it is not installed yet."""
    if shutil.which("kcat") is None:
        return "1.7.1"
    found = re.search(r"Version (\S+)", output_of("kcat", "-V"))
    return found[1] if found else "unknown"


_NOT_ADMINISTRATED = (
    "admin:topics",
    "admin:create_partitions",
    "admin:configs",
    "admin:describe_group",
    "admin:list_groups",
    "admin:delete_group",
    "admin:alter_group_offsets",
    "admin:delete_group_offsets",
    "admin:delete_records",
)

CLIENTS = [
    Client(
        name="kcat",
        version=installed_version(),
        prepare=prepare,
        cannot={
            "group:consumer": "has no option for each member's protocol here",
            "transactions": "no transactions",
            "timestamps": "cannot set a record's timestamp",
            "timestamp_type": "does not tell it",
            "null_header": "cannot write a header without a value",
            "binary_header": "headers are words of its command line",
            "null_key_and_value": "an empty line is no record to it",
            "empty_key_and_value": "an empty line is no record to it",
            "group:commit": "commits only what it has printed",
            **dict.fromkeys(_NOT_ADMINISTRATED, "no admin calls but metadata and offsets"),
            "admin:cluster_id": "does not tell it",
            "security:SCRAM-SHA-512": (
                "librdkafka before 2.6.1 repeats its nonce, which Apache Kafka 4 refuses too "
                "(CVE-2024-56128)"
            ),
            "admin:max_timestamp": "looks offsets up by time only",
        },
    )
]
