"""kafka-python, the 3.x line and the last of 2.x, with the packages that its codecs need."""

from __future__ import annotations

from functools import partial

from compat_tests.clients import Client, python_client

_CODECS = ("python-snappy==0.7.3", "lz4==4.4.5", "zstandard==0.25.0")
_CANNOT = {
    "group:consumer": "classic protocol only",
    "null_header": "refuses a header without a value",
    "null_key_and_value": "refuses a record with neither key nor value",
}

CLIENTS = [
    Client(
        name="kafka-python",
        version="3.0.12",
        prepare=partial(python_client, "kafka_python", "kafka-python==3.0.12", *_CODECS),
        cannot=_CANNOT,
    ),
    Client(
        name="kafka-python",
        version="2.3.2",
        is_current=False,
        prepare=partial(python_client, "kafka_python", "kafka-python==2.3.2", *_CODECS),
        cannot={
            **_CANNOT,
            "require_stable": "OffsetFetch up to v5",
            "admin": "the driver makes 3.x's admin calls, which had other names",
            "acks0": "reports success and never writes the request",
            "group:cooperative": "eager rebalances only",
        },
    ),
]
