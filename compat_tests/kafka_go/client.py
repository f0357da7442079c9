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
            "group:consumer": "classic protocol only",
            "transactions": "no transactions",
            "read_committed": "asks for committed records, but leaves in aborted ones",
            # "reads:<writer> <codec>": left out where this client reads what another wrote.
            "reads:aiokafka lz4": "finds a block checksum wrong that others find right",
            "idempotence": "no idempotent producer",
            "timestamp_type": "does not tell it",
            "log_append_time": "tells the producer's timestamp even so",
            "null_header": "reads an empty header value as null",
            "empty_key_and_value": "reads an empty key or value as null",
            "out_of_range_reset": "no reset policy for chosen partitions",
            "group:beside": "its subscription lacks a field of its version; brokers refuse it",
            "group:mixed": "its subscription lacks a field of its version; Java refuses it",
            "group:static": "no group.instance.id",
            "group:cooperative": "eager rebalances only",
            "group:auto_commit": "Reader commits what its user commits",
            "admin:delete_records": "no such call",
            "admin:max_timestamp": "ListOffsets up to v5",
            "admin:protocol": "does not tell it",
            "admin:instance_id": "does not tell it",
        },
    )
]
