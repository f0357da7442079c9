"""confluent-kafka, current and from before librdkafka 2.11.1, whose feature gates were stricter."""

from __future__ import annotations

from functools import partial

from compat_tests.clients import Client, python_client

_CANNOT = {
    "admin:delete_group_offsets": "no such call",
}

_CANNOT_OLD = {"group:consumer": "group.protocol=consumer was early access before 2.12"}

CLIENTS = [
    Client(
        name="confluent-kafka",
        version=version,
        prepare=partial(python_client, "confluent_kafka", f"confluent-kafka=={version}"),
        is_current=version == "2.16.1",
        cannot=_CANNOT | ({} if version == "2.16.1" else _CANNOT_OLD),
    )
    for version in ("2.16.1", "2.6.1")
]
