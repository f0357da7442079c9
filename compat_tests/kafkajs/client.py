"""kafkajs, with codec packages that need no compiler."""

from __future__ import annotations

from functools import partial

from compat_tests.clients import Client, node_client

CLIENTS = [
    Client(
        name="kafkajs",
        version="2.2.4",
        prepare=partial(node_client, "kafkajs"),
        cannot={
            "group:consumer": "classic protocol only",
            "transactions:interleaved": "wants aborted transactions in the order of their begin",
            "require_stable": "OffsetFetch up to v4",
            "null_header": "cannot write a header without a value",
            "large_request": "no limit of its own to raise",
            "timestamp_type": "does not tell it",
            "assign": "consumes in groups only",
            "out_of_range_reset": "consumes in groups only",
            "group:mixed": "brings an assignor of its own only (RoundRobinAssigner)",
            "admin:no_offset": "turns a time after the last record into the end offset",
            "group:range": "brings an assignor of its own only (RoundRobinAssigner)",
            "group:static": "no group.instance.id",
            "group:cooperative": "eager rebalances only",
            "admin:delete_group_offsets": "no such call",
            "admin:max_timestamp": "ListOffsets up to v3",
            "admin:instance_id": "DescribeGroups up to v2",
        },
    )
]
