"""`kafkalite health`: does a broker answer, and is it part of a cluster that works."""

import click

from kafkalite.cli.options import with_cluster
from kafkalite.cli.output import examples
from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)


@click.command(epilog=examples("kafkalite health", "kafkalite health -b 127.0.0.1:9093"))
@with_cluster
def health(client: Client) -> None:
    """Tell whether a broker serves clients; exit with 1 if not.

    It does when it answers, is among the brokers that it tells clients of, and knows a controller,
    without which no topic can be made. All this is what it knows itself: one that was just cut off
    from the others answers for a while as before. Made for the health checks of containers.
    """
    metadata = client.fetch_metadata([])
    brokers = sorted(broker.node_id for broker in metadata.brokers)
    if not _is_one_of(brokers, client):
        raise ClientError(f"this broker is not among those of its cluster: {_listed(brokers)}")
    if metadata.controller_id not in brokers:
        raise ClientError(f"there is no controller; brokers: {_listed(brokers)}")
    click.echo(
        f"ok: brokers {_listed(brokers)}, controller {metadata.controller_id}, "
        f"cluster {metadata.cluster_id}"
    )


def _is_one_of(brokers: list[int], client: Client) -> bool:
    """Tell whether the broker asked has one of these ids.

    No answer says which it has, and the address that it gives to clients is often another than
    the one it is asked at; but only of itself does it tell the settings.
    """
    resources = [
        DescribeConfigsResource(
            resource_type=admin.ResourceType.BROKER,
            resource_name=str(broker),
            configuration_keys=["node.id"],
        )
        for broker in brokers
    ]
    answer = client.any_broker().request(
        DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources)
    )
    return any(result.error_code == ErrorCode.NONE for result in answer.results)


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
