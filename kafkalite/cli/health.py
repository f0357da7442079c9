"""`kafkalite health`: does a broker answer, and is it part of a cluster that works."""

import click

from kafkalite.cli.options import with_cluster
from kafkalite.cli.output import examples
from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError


@click.command(epilog=examples("kafkalite health", "kafkalite health -b 127.0.0.1:9093"))
@with_cluster
def health(client: Client) -> None:
    """Tell whether a broker serves clients; exit with 1 if not.

    It does when it answers and knows a controller, without which no topic can be made. Made for
    the health checks of containers.
    """
    metadata = client.fetch_metadata([])
    brokers = sorted(broker.node_id for broker in metadata.brokers)
    if metadata.controller_id not in brokers:
        raise ClientError(f"there is no controller; brokers: {_listed(brokers)}")
    click.echo(
        f"ok: brokers {_listed(brokers)}, controller {metadata.controller_id}, "
        f"cluster {metadata.cluster_id}"
    )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
