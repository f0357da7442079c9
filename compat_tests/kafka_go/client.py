"""segmentio/kafka-go."""

from __future__ import annotations

from functools import partial

from compat_tests.clients import Client, go_client

CLIENTS = [
    Client(
        name="kafka-go",
        version="0.4.51",
        prepare=partial(go_client, "kafka_go"),
        cannot={
            "idempotence": "no idempotent producer",
            "timestamp_type": "does not tell it",
            "group:static": "no group.instance.id",
            "group:cooperative": "eager rebalances only",
            "group:auto_commit": "Reader commits what its user commits",
            "admin:delete_records": "no such call",
            "admin:max_timestamp": "ListOffsets v1",
            "admin:protocol": "does not tell it",
            "admin:instance_id": "DescribeGroups v0",
        },
    )
]
