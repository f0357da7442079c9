"""Names of Kafka's metrics as three families of dashboards have them (decision 0132). Pure.

The first word of `kafkalite.metrics.names` is `jmx`: the example rules of jmx_exporter, in small
letters. `persec` keeps PerSec, `reporter` is Strimzi's metrics reporter.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kafkalite.observe.exposition import COUNTER, UNTYPED, Family

JMX: Final = "jmx"
PERSEC: Final = "persec"
REPORTER: Final = "reporter"
JVM: Final = "jvm"
"""Adds what panels about a Java virtual machine look for."""

PER_SECOND: Final = frozenset(
    {
        "messagesin",
        "bytesin",
        "bytesout",
        "replicationbytesin",
        "replicationbytesout",
        "bytesrejected",
        "totalproducerequests",
        "totalfetchrequests",
        "failedproducerequests",
        "failedfetchrequests",
        "producemessageconversions",
        "fetchmessageconversions",
        "invalidmagicnumberrecords",
        "invalidmessagecrcrecords",
        "invalidoffsetorsequencerecords",
        "nokeycompactedtopicrecords",
        "requests",
        "errors",
        "isrshrinks",
        "isrexpands",
        "failedisrupdates",
        "uncleanleaderelections",
        "incrementalfetchsessionevictions",
        "zookeeperdisconnects",
        "zookeeperexpires",
        "zookeepersyncconnects",
    }
)
"""Names of meters: an MBean's name has PerSec behind them."""

PERCENT: Final = {
    "kafka_network_socketserver_networkprocessoravgidle_percent": (
        "kafka_network_socketserver_networkprocessoravgidlepercent",
        "kafka_network_socketserver_networkprocessoravgidlepercent",
    ),
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
    ),
}


SOCKET_SERVER: Final = "kafka_server_socket_server_metrics_"
CONFLUENT_SOCKET_SERVER: Final = "kafka_server_socketservermetrics_"
HANDLER_IDLE: Final = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"


def in_other_names(families: Iterable[Family], wanted: Sequence[str]) -> list[Family]:
    """Return families under the names that are wanted; those that all share come once."""
    found: dict[str, Family] = {}
    for family in families:
        others = [
            other for kind in wanted if kind not in (JMX, JVM) for other in _others(family, kind)
        ]
        if JMX in wanted or not others:
            found[family.name] = family
        for other in others:
            found.setdefault(other.name, other)  # some names are the same in two of them
    return list(found.values())


def renamed(family: Family, kind: str) -> Family:
    """Return a family under the name that it has elsewhere."""
    if family.name in PERCENT:
        name = PERCENT[family.name][kind == REPORTER]
        return Family(name, UNTYPED, family.help, family.samples)
    base = family.name.removesuffix("_total") + "persec"
    if kind == REPORTER:
        return Family(f"{base}_total", COUNTER, family.help, family.samples)
    return Family(base, UNTYPED, family.help, family.samples)


def _others(family: Family, kind: str) -> list[Family]:
    """Return a family under the names that it has elsewhere, if they are others."""
    found = [renamed(family, kind)] if _differs(family.name) else []
    if kind == PERSEC and family.name.startswith(SOCKET_SERVER):
        name = CONFLUENT_SOCKET_SERVER + family.name.removeprefix(SOCKET_SERVER)
        found.append(Family(name, family.type, family.help, family.samples))
    if kind == PERSEC and family.name == HANDLER_IDLE:
        name = f"{PERCENT[HANDLER_IDLE][0]}_oneminuterate"
        found.append(Family(name, family.type, family.help, family.samples))
    return found


def _differs(name: str) -> bool:
    if name in PERCENT:
        return True
    return name.endswith("_total") and name.removesuffix("_total").split("_")[-1] in PER_SECOND
