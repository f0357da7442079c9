"""Following what others write: the controller reads notices, and then what they are of.

Nothing but a comparison decides: what a notice names is read, and what is not as the image has it
becomes a commit. That commit leaves the nodes as they are, even if they are written once more
meanwhile (rule 590); then they are read again.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kazoo.exceptions import NoNodeError

from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    AclsChanged,
    Change,
    ConfigsChanged,
    PartitionsAdded,
    TopicCreated,
    settings_of,
)
from kafkalite.meta.entities import changed_settings
from kafkalite.meta.image import NO_LEADER, ConfigResource, Image, PartitionImage
from kafkalite.meta.partition_changes import elect_if_unclean
from kafkalite.meta.store import (
    AskedByOthers,
    MetadataStoreError,
    StoreEvent,
    WrittenByOthers,
)
from kafkalite.meta.zookeeper import znodes
from kafkalite.meta.zookeeper.admin_nodes import AdminNodes
from kafkalite.meta.zookeeper.notice_nodes import FOLLOWED, read_notice
from kafkalite.security.acls import Pattern
from kafkalite.settings.config_def import SettingError, parse_value
from kafkalite.settings.registry import BROKER, TOPIC

logger = logging.getLogger("kafkalite.meta")

KEPT_MS: Final = 15 * 60 * 1_000
"""Time for which notices are kept, as by Apache Kafka."""
KEPT: Final = 1_000
AT_ONCE: Final = 500
"""Requests under way at a time."""
_SETTINGS: Final = {TOPIC_RESOURCE: TOPIC, BROKER_RESOURCE: BROKER}


class Notices:
    """The notices that were seen, and what is still to be read because of them.

    Args:
        client: of ZooKeeper.
        one: waits for one of its requests.
    """

    def __init__(self, client: Any, one: Callable[[Any], Awaitable[Any]]) -> None:
        self._client = client
        self._one = one
        # When each was made, milliseconds since 1970.
        self._seen: dict[str, int] = {}
        self._wanted: dict[Pattern | ConfigResource, None] = {}
        self._admin = AdminNodes(client, one)
        self.half_made: Mapping[str, znodes.TopicNode] = {}
        """Topics that were not whole when everything was read."""
        self._taken: tuple[Sequence[Change], Collection[str], frozenset[str]] = (
            (),
            (),
            frozenset(),
        )

    def forget(self) -> None:
        """Take all notices for new: others may have been controller meanwhile."""
        self._seen.clear()

    async def news(self, watch: Callable[[object], None], now_ms: int) -> list[StoreEvent]:
        """Return what there is to take up, or to do.

        Args:
            watch: called when there may be more.
            now_ms: since 1970.
        """
        events: list[StoreEvent] = []
        if await self.follow(watch, now_ms):
            events.append(WrittenByOthers(read=self.read))
        if await self._admin.follow(watch):
            events.append(AskedByOthers(requests=self._admin))
        return events

    async def follow(self, watch: Callable[[object], None], now_ms: int) -> bool:
        """Read new notices and remove old ones; tell whether `read` is due.

        Args:
            watch: called when there may be new ones.
            now_ms: since 1970.
        """
        there: dict[str, int] = {}
        for folder in (*FOLLOWED, znodes.TOKEN_NOTICES):
            try:
                names = await self._one(self._client.get_children_async(folder, watch=watch))
            except NoNodeError:  # somebody removed it; it is made again at the next start
                continue
            paths = sorted(f"{folder}/{name}" for name in names)
            there |= {path: self._seen[path] for path in paths if path in self._seen}
            new = [path for path in paths if path not in self._seen]
            for start in range(0, len(new), AT_ONCE):
                there |= await self._read_notices(new[start : start + AT_ONCE])
        self._seen = there
        excess = sorted(there, key=there.__getitem__)[: max(0, len(there) - KEPT)]
        for path in {*excess, *(path for path in there if there[path] < now_ms - KEPT_MS)}:
            self._client.delete_async(path)
        return bool(self._wanted or self.half_made)

    async def _read_notices(self, paths: Sequence[str]) -> dict[str, int]:
        pending = [self._client.get_async(path) for path in paths]
        found = {}
        for path, request in zip(paths, pending, strict=True):
            try:
                data, stat = await self._one(request)
                found[path] = stat.ctime
                if not path.startswith(znodes.TOKEN_NOTICES):
                    named = read_notice(path, data)
                    if named is not None:
                        self._wanted[named] = None
            except NoNodeError:
                continue
            except (znodes.NotKafka, MetadataStoreError) as error:
                logger.warning("ZooKeeper: %s: %s", path, error)
        return found

    async def read(self, image: Image) -> list[Change]:
        """Return what others made of the image; to be called while nobody commits.

        What is returned is returned again until it is committed.
        """
        changes: list[Change] = []
        theirs: list[str] = []
        for named in tuple(self._wanted):
            path = (
                znodes.acl_path(named) if isinstance(named, Pattern) else znodes.config_path(named)
            )
            try:
                differing = _difference(named, path, await self._data(path), image)
            except (znodes.NotKafka, MetadataStoreError) as error:
                # Somebody's mistake, or a node that brokers may not read: nobody else's harm.
                logger.warning("ZooKeeper: %s: %s", path, error)
                differing = []
            if not differing:
                del self._wanted[named]
            changes += differing
            theirs.append(path)
        missing = [
            each for topic in self.half_made.values() for each in _missing_partitions(topic, image)
        ]
        if not missing:
            self.half_made = {}
        there = [path for each in missing for path in await self._there(each)]
        changes += missing
        self._taken = (changes, theirs, frozenset(there))
        return changes

    async def _there(self, change: TopicCreated | PartitionsAdded) -> list[str]:
        """Return the nodes of a topic that are there, of those that the change makes."""
        topic = znodes.topic_path(change.name)
        first = max(0, getattr(change, "first_index", 0))
        paths = [topic, f"{topic}/partitions"]
        for index in range(first, first + len(change.partitions)):
            state = znodes.state_path(change.name, index)
            paths += [state.rpartition("/")[0], state]
        requests = [self._client.exists_async(path) for path in paths]
        return [path for path, one in zip(paths, requests, strict=True) if await self._one(one)]

    async def _data(self, path: str) -> bytes:
        """Return what a node holds; nothing if it is not there."""
        try:
            data, _ = await self._one(self._client.get_async(path))
        except NoNodeError:
            return b""
        return bytes(data)

    def nodes_of(self, changes: Sequence[Change]) -> tuple[Collection[str], frozenset[str]]:
        """Return nodes that changes were read from, and those that they make and are there.

        There are none if these are not the changes that `read` returned last.
        """
        return self._taken[1:] if changes is self._taken[0] else ((), frozenset())


def _missing_partitions(
    topic: znodes.TopicNode, image: Image
) -> list[TopicCreated | PartitionsAdded]:
    """Return the change that makes the image have all partitions of a topic's node (rule 256)."""
    known = image.topics.get(topic.name)
    eligible = image.eligible_brokers()
    first = 0 if known is None else len(known.partitions)
    added = tuple(_first_state(each, eligible) for each in topic.partitions[first:])
    if not added or (known is not None and known.topic_id != topic.topic_id):
        return []
    if known is None:
        return [TopicCreated(name=topic.name, topic_id=topic.topic_id, partitions=added)]
    topic_id = topic.topic_id
    return [
        PartitionsAdded(name=topic.name, topic_id=topic_id, partitions=added, first_index=first)
    ]


def _first_state(partition: PartitionImage, eligible: Collection[int]) -> PartitionImage:
    there = tuple(replica for replica in partition.replicas if replica in eligible)
    leader = there[0] if there else NO_LEADER
    return replace(partition, isr=there or partition.replicas, leader=leader)


def _difference(
    named: Pattern | ConfigResource, path: str, data: bytes, image: Image
) -> list[Change]:
    """Return the change that makes the image show what a node holds.

    Raises:
        NotKafka: it holds what it should not.
    """
    if isinstance(named, Pattern):
        entries = znodes.read_acls(path, data) if data else ()
        if set(entries) == set(image.acls.get(named, ())):
            return []
        return [AclsChanged(pattern=named, entries=entries)]
    if named.type == TOPIC_RESOURCE and named.name not in image.topics:
        return []
    values = znodes.read_config(path, data) if data else {}
    for name in values.keys() & _SETTINGS.get(named.type, {}).keys():
        try:
            parse_value(_SETTINGS[named.type][name], values[name])
        except SettingError as error:
            raise znodes.NotKafka(f"{path}: {error}") from error
    gone = dict.fromkeys(settings_of(named, image))
    changes = changed_settings(named, {**gone, **values}, image)
    for change in tuple(changes):
        if isinstance(change, ConfigsChanged):
            changes += elect_if_unclean(change, image)
    return changes
