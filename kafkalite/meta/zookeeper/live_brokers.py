"""The brokers that have a session, as the controller is told of them."""

from collections.abc import Awaitable, Callable
from typing import Any

from kazoo.exceptions import NoNodeError

from kafkalite.meta.store import LiveBrokers
from kafkalite.meta.zookeeper import znodes


async def read_brokers(
    client: Any, one: Callable[[Any], Awaitable[Any]], watch: Callable[[object], None]
) -> LiveBrokers:
    """Return who is there.

    Args:
        client: of ZooKeeper.
        one: waits for one of its requests.
        watch: called when that may have changed.
    """
    names = await one(client.get_children_async(znodes.BROKER_IDS, watch=watch))
    pending = [
        client.get_async(znodes.broker_path(int(name)), watch=watch) for name in sorted(names)
    ]
    brokers = {}
    for name, request in zip(sorted(names), pending, strict=True):
        try:
            data, stat = await one(request)
        except NoNodeError:
            continue  # the watch of the folder is called
        broker = znodes.read_broker(int(name), data, broker_epoch=stat.czxid)
        brokers[broker.broker_id] = broker
    return LiveBrokers(brokers=dict(sorted(brokers.items())))
