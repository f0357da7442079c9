"""aiokafka."""

from __future__ import annotations

from functools import partial

from compat_tests.clients import Client, python_client

CLIENTS = [
    Client(
        name="aiokafka",
        version="0.14.0",
        prepare=partial(python_client, "aiokafka", "aiokafka==0.14.0", "cramjam==2.14.0"),
        cannot={
            "group:consumer": "classic protocol only",
            "require_stable": "OffsetFetch up to v3",
            "null_key_and_value": "refuses a record with neither key nor value",
            "invalid_record": "does not know that error's number",
            "group:cooperative": "eager rebalances only",
            "admin:describe_unknown": "asks in a way that has the broker create the topic",
            "admin:delete_group": "no such call",
            "admin:alter_group_offsets": "no such call",
            "admin:delete_group_offsets": "no such call",
            "admin:max_timestamp": "ListOffsets up to v3",
            "admin:instance_id": "DescribeGroups up to v3",
        },
    )
]
