"""franz-go."""

from __future__ import annotations

from functools import partial

from compat_tests.clients import Client, go_client

CLIENTS = [
    Client(
        name="franz-go",
        version="1.22.2",
        prepare=partial(go_client, "franz_go"),
        cannot={
            "admin:no_offset": "turns a time after the last record into the end offset",
            "group:away": "leaves for a while without its instance id, which Kafka refuses",
        },
    )
]
