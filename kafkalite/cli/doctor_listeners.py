"""Checks of `kafkalite doctor` that are about clocks, and listeners with TLS."""

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.client.offsets import list_offsets
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.describe_quorum import (
    DESCRIBE_QUORUM,
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumTopic,
)
from kafkalite.wire.messages.metadata import MetadataResponse

SKEW_MAX_S: Final = 2.0
"""A clock that is off by more is told of; requests take less than that."""

FUTURE_MAX_S: Final = 60.0
MAX_TIMESTAMP: Final = -3
"""Asks ListOffsets for the youngest record (KIP-734)."""

PARTITIONS_MAX: Final = 1_000
EXPIRES_SOON_S: Final = 14 * 86_400
CONNECT_TIMEOUT_S: Final = 5.0
TLS_PROTOCOLS: Final = ("SSL", "SASL_SSL")
CLUSTER_METADATA: Final = "__cluster_metadata"


class Finding(NamedTuple):
    """A problem and its remedy; `weight` is error or warning."""

    weight: str
    what: str
    advice: str


def clocks(client: Client, metadata: MetadataResponse) -> Iterator[Finding]:
    """Compare the controller's clock, and the youngest records, with this machine's clock."""
    ahead_s = _ahead_s(client)
    if ahead_s is not None and abs(ahead_s) > SKEW_MAX_S:
        side = "ahead of" if ahead_s > 0 else "behind"
        yield Finding(
            "warning",
            f"the controller's clock is {abs(ahead_s):.0f} s {side} this machine's",
            "Synchronise both (NTP): retention, timestamps and lag in seconds go by them. "
            "`kafkalite clock reset` undoes what `kafkalite clock` has set.",
        )
    places = [
        TopicPartition(topic.name or "", partition.partition_index)
        for topic in metadata.topics
        if not (topic.name or "").startswith("__")
        for partition in topic.partitions
        if partition.leader_id >= 0
    ][:PARTITIONS_MAX]
    latest = list_offsets(client, dict.fromkeys(places, MAX_TIMESTAMP))
    limit_ms = (time.time() + FUTURE_MAX_S) * 1_000
    future = [place for place in places if latest[place].timestamp > limit_ms]
    if future:
        ahead_s = max(latest[place].timestamp for place in future) / 1_000 - time.time()
        yield Finding(
            "warning",
            f"{len(future)} partitions have records of the future, up to {ahead_s:.0f} s from now: "
            f"{', '.join(map(str, future[:5]))}",
            "A producer's clock is ahead, or its timestamps are not in milliseconds. Such records "
            "outlive their retention; message.timestamp.after.max.ms refuses them.",
        )


def _ahead_s(client: Client) -> float | None:
    """Return how far the controller's clock is ahead, None if it does not tell the time.

    DescribeQuorum tells when the metadata's leader was last up to date with itself: now.
    """
    connection = client.controller()
    if not connection.supports(DESCRIBE_QUORUM):
        return None
    partition = DescribeQuorumPartition(partition_index=0)
    topic = DescribeQuorumTopic(topic_name=CLUSTER_METADATA, partitions=[partition])
    began_s = time.time()
    answer = connection.request(DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[topic]))
    here_s = (began_s + time.time()) / 2
    for described in answer.topics:
        for data in described.partitions:
            for voter in data.current_voters:
                if voter.replica_id == data.leader_id and voter.last_caught_up_timestamp > 0:
                    there_s: float = voter.last_caught_up_timestamp / 1_000
                    return there_s - here_s
    return None


def tls_listeners(client: Client, metadata: MetadataResponse) -> Iterator[Finding]:
    """Shake hands with each listener that has TLS, by the certificates that this client trusts."""
    for broker in metadata.brokers:
        configs = {
            each.name: each.value or ""
            for each in admin.describe_configs(
                client, admin.ResourceType.BROKER, str(broker.node_id)
            )
        }
        for name, host, port in _tls_addresses(configs):
            where = f"listener {name} of broker {broker.node_id}"
            if port:
                at = f"{where} at {host or broker.host}:{port}"
                yield from _shake_hands(client, at, host or broker.host, port)
            elif client.tls_context is not None:  # the listener that this client came in by
                at = f"{where} at {broker.host}:{broker.port}"
                yield from _shake_hands(client, at, broker.host, broker.port)
            else:
                yield Finding("warning", f"{where} is not looked at: its port is 0", CHOSEN_ADVICE)


def _tls_addresses(configs: dict[str, str]) -> Iterator[tuple[str, str, int]]:
    protocols = dict(
        pair.split(":", 1)
        for pair in configs.get("listener.security.protocol.map", "").split(",")
        if ":" in pair
    )
    text = configs.get("advertised.listeners") or configs.get("listeners", "")
    if "://" not in text:  # such as `auto`: the address that a client came in by
        text = configs.get("listeners", "")
    for listener in text.split(","):
        name, _, address = listener.strip().partition("://")
        host, _, port = address.rpartition(":")
        if protocols.get(name, name) in TLS_PROTOCOLS and port.isdigit():
            yield name, "" if host in ("0.0.0.0", "[::]") else host.strip("[]"), int(port)


def _shake_hands(client: Client, where: str, host: str, port: int) -> Iterator[Finding]:
    context = client.tls_context or ssl.create_default_context()
    try:
        with (
            socket.create_connection((host, port), CONNECT_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            certificate = secure.getpeercert()
    except ssl.SSLCertVerificationError as error:
        knows_more = client.tls_context is not None
        is_trust = error.verify_code in UNTRUSTED
        yield Finding(
            "warning" if is_trust and not knows_more else "error",
            f"{where} shows a certificate that is refused here: {error.verify_message}",
            TRUST_ADVICE if is_trust else "Renew it, with the names that clients connect to in it.",
        )
        return
    except OSError as error:
        yield Finding("error", f"{where}: no TLS: {error}", "Look into the broker's log.")
        return
    not_after = certificate.get("notAfter") if certificate else None
    if isinstance(not_after, str):
        left_s = ssl.cert_time_to_seconds(not_after) - time.time()
        if left_s < EXPIRES_SOON_S:
            yield Finding(
                "warning",
                f"{where} has a certificate that expires in {left_s / 86_400:.0f} days",
                "Renew it: clients refuse it afterwards.",
            )


UNTRUSTED: Final = frozenset({18, 19, 20, 21})
"""OpenSSL's codes of certificates that nobody vouches for who is trusted."""

CHOSEN_ADVICE: Final = (
    "The system chose the port, and the settings do not tell it: ask by that listener itself, "
    "`kafkalite doctor -b HOST:PORT --command-config FILE`."
)
TRUST_ADVICE: Final = (
    "Clients need its authority: ssl.ca.location, or ssl.truststore.location. `kafkalite "
    "client-config` shows that of `serve --secure`; give it to this command by --command-config."
)
