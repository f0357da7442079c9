"""Topics that this broker needs, or that its clients use: created if they are not there."""

from collections.abc import Iterable, Sequence

import trio

from kafkalite.config import BrokerConfig
from kafkalite.meta.controller import check_partition_count
from kafkalite.meta.controller_requests import create_topics
from kafkalite.meta.events import CreateTopic
from kafkalite.meta.image import TopicImage
from kafkalite.meta.peers import ControllerChannel
from kafkalite.meta.runner import MetadataRunner
from kafkalite.meta.topic_defaults import default_topic
from kafkalite.wire.errors import ErrorCode, KafkaError


class AutoTopicCreationManager:
    """Creates topics here while this broker is the controller, else by a request to it.

    Args:
        config: the broker's settings.
        metadata: what is known, and changed here.
        channel: to the controller; None on a lone broker.
    """

    def __init__(
        self, config: BrokerConfig, metadata: MetadataRunner, channel: ControllerChannel | None
    ) -> None:
        self._config = config
        self._metadata = metadata
        self._channel = channel

    async def ensure_topic(self, name: str) -> TopicImage:
        """Return a topic, which is created with the broker's defaults if it is not there.

        Internal topics get the settings that the broker has for them (rule 21).

        Raises:
            KafkaError: as for any creation.
        """
        refused = await self.ensure_topics([name])
        if name in refused:
            raise refused[name]
        topic = self._metadata.image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted again")
        return topic

    async def ensure_topics(self, names: Iterable[str]) -> dict[str, KafkaError]:
        """Create those topics that are not there; return what was refused.

        That is all of them if they are more than one request may create (rule 250).
        """
        image = self._metadata.image
        missing = [name for name in dict.fromkeys(names) if name not in image.topics]
        if not missing:
            return {}
        count = len(image.brokers)
        events = [
            default_topic(
                name, self._config, topic_id=self._metadata.new_topic_id(), broker_count=count
            )
            for name in missing
        ]
        return await self.create_missing(events)

    async def create_missing(self, events: Sequence[CreateTopic]) -> dict[str, KafkaError]:
        """Create topics that may be there already, with one commit; return what was refused.

        Raises:
            KafkaError: NOT_CONTROLLER, this broker has nothing to decide any more.
        """
        try:
            check_partition_count(sum(event.num_partitions for event in events))
        except KafkaError as error:
            return {event.name: error for event in events}
        if self._channel is not None and not self._metadata.is_controller:
            return await self._ask_controller(self._channel, events)
        results = await self._metadata.submit_all(events)
        return {
            event.name: result
            for event, result in zip(events, results, strict=True)
            # Somebody else was first.
            if isinstance(result, KafkaError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS
        }

    async def _ask_controller(
        self, channel: ControllerChannel, events: Sequence[CreateTopic]
    ) -> dict[str, KafkaError]:
        timeout_ms = self._config.int("controller.socket.timeout.ms")
        refused = await create_topics(channel, events, timeout_ms=timeout_ms)
        created = [event.name for event in events if event.name not in refused]
        # What the controller has committed comes here soon; if it does not, the caller sees.
        with trio.move_on_after(timeout_ms / 1_000):
            await self._metadata.wait_until(
                lambda image: all(name in image.topics for name in created)
            )
        return refused
