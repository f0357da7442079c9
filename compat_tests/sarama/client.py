"""sarama, with its default Config.Version and with the one that it had until 2026."""

from __future__ import annotations

from compat_tests.clients import Client, Prepared, go_client

_CANNOT = {
    "group:consumer": "classic protocol only",
    "timestamp_type": "does not tell it",
    "out_of_range_reset": "no reset policy for chosen partitions; ErrOffsetOutOfRange",
    "group:cooperative": "eager rebalances only",
    "admin:max_timestamp": "the client's offset lookup takes times only",
    "admin:cluster_id": "does not tell it",
}


def prepare_old() -> Prepared:
    """The same driver, told that the cluster is a Kafka 2.1."""
    command, environment = go_client("sarama")
    return command, {**environment, "SARAMA_VERSION": "2.1.0"}


CLIENTS = [
    Client(
        name="sarama",
        version="1.61.1",
        prepare=lambda: go_client("sarama"),
        cannot=_CANNOT,
    ),
    Client(
        name="sarama",
        version="1.61.1 V2_1_0_0",
        prepare=prepare_old,
        is_current=False,
        cannot={
            **_CANNOT,
            "require_stable": "needs Config.Version 2.5",
            "group:static": "needs Config.Version 2.3",
            "admin:delete_group_offsets": "needs Config.Version 2.4",
            "admin:instance_id": "DescribeGroups up to v2",
        },
    ),
]
