"""ShareAcknowledge (key 79), versions 1-2: what a member of a share group says of records.

KIP-932. v2: renewed locks (KIP-1222).

Rules 405-411. What ShareFetch acknowledges on the way goes through here too.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import trio

from kafkalite.api.current_leader import CurrentLeaders
from kafkalite.api.handler import Handler
from kafkalite.api.share_session import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, TopicIdPartition
from kafkalite.deferred import Deferred
from kafkalite.meta.features import SHARE_VERSION
from kafkalite.share.acknowledgement import Acknowledgement, AcknowledgeType
from kafkalite.share.batches import SharePartitionKey
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.share_acknowledge import (
    SHARE_ACKNOWLEDGE,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.api.share_session import ShareSessions
    from kafkalite.share.manager import Outcome, SharePartitionManager

FIRST_VERSION_WITH_RENEWAL = 2
MEMBER_ID_LENGTH_MAX = 36

MOVED_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

Batches = Iterable[Any]
"""AcknowledgementBatches of either request."""


@dataclass(slots=True)
class Acknowledged:
    """Outcome of everything that one request acknowledges.

    Attributes:
        errors: refused before any share partition was asked, None for what there is nothing to say
            of.
        outcomes: what share partitions say, perhaps later.
    """

    errors: dict[TopicIdPartition, KafkaError | None] = field(default_factory=dict)
    outcomes: "dict[TopicIdPartition, Outcome]" = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether everything is known."""
        return all(outcome.is_done for outcome in self.outcomes.values())

    def watch(self, on_done: Callable[[], object]) -> None:
        """Call `on_done` when something more is known."""
        for outcome in self.outcomes.values():
            outcome.on_done = on_done

    def results(self) -> list[tuple[TopicIdPartition, KafkaError | None]]:
        """Return the error of each partition, None without."""
        found = [*self.errors.items()]
        found += [(place, outcome.error) for place, outcome in self.outcomes.items()]
        return found


def check_enabled(context: "RequestContext") -> None:
    """Refuse everything about share groups where they are switched off (rule 380).

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    if not context.services.metadata.image.feature_level(SHARE_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{SHARE_VERSION} is 0")


def check_member(group_id: str | None, member_id: str | None) -> SessionKey:
    """Return whose session is meant (rule 405).

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return SessionKey(group_id, member_id)


def acknowledge(
    key: SessionKey,
    batches: Iterable[tuple[TopicIdPartition, Batches]],
    *,
    is_renewal: bool,
    context: "RequestContext",
) -> Acknowledged:
    """Do what a member says of records (rules 400 and 411)."""
    image = context.services.metadata.image
    found = Acknowledged()
    empty: list[TopicIdPartition] = []
    wanted: dict[TopicIdPartition, list[Acknowledgement]] = {}
    for place, entries in batches:
        topic = image.topic_by_id(place.topic_id)
        if topic is None:
            found.errors[place] = KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic {place.topic_id}"
            )
            continue
        acknowledgements = [
            Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types)
            for each in entries
        ]
        try:
            _check(acknowledgements, is_renewal=is_renewal, version=context.api_version)
        except KafkaError as error:
            found.errors[place] = error
            continue
        authorizer = context.services.authorizer
        if authorizer is not None and not authorizer.may_read(context, topic.name):
            found.errors[place] = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif not 0 <= place.partition < len(topic.partitions):
            found.errors[place] = KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic.name}-{place.partition}"
            )
        elif acknowledgements:
            wanted[place] = acknowledgements
        else:
            empty.append(place)
    if wanted:
        # As in Kafka those without a batch are answered only beside others.
        found.errors.update(dict.fromkeys(empty))
    shares = context.services.share.partitions
    for place, acknowledgements in wanted.items():
        share_key = SharePartitionKey(key.group_id, *place)
        found.outcomes[place] = shares.acknowledge(share_key, key.member_id, acknowledgements)
    return found


def _check(acknowledgements: Iterable[Acknowledgement], *, is_renewal: bool, version: int) -> None:
    """Refuse what cannot be meant (rule 411).

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    knows_renewal = version >= FIRST_VERSION_WITH_RENEWAL
    type_max = AcknowledgeType.RENEW if knows_renewal else AcknowledgeType.REJECT
    before = -1
    for each in acknowledgements:
        first, last, types = each.first_offset, each.last_offset, each.types
        if not before <= first <= last:
            reason = f"offsets {first} to {last} after {before}"
        elif not types or (len(types) > 1 and len(types) != last - first + 1):
            reason = f"{len(types)} types for offsets {first} to {last}"
        elif not all(0 <= kind <= type_max for kind in types):
            reason = f"types {sorted(set(types))} are not all known"
        elif AcknowledgeType.RENEW in types and not is_renewal:
            reason = "a lock is renewed in a request that does not say so"
        else:
            before = last
            continue
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)


def release_session(key: SessionKey, context: "RequestContext") -> None:
    """End a member's session, and take back what it has (rule 404)."""
    services = context.services
    session = services.share_sessions.remove(key)
    if session is not None:
        keys = [SharePartitionKey(key.group_id, *place) for place in session.partitions]
        services.share.partitions.release(key.member_id, keys)


def end_sessions(
    connection_id: int, sessions: "ShareSessions", partitions: "SharePartitionManager"
) -> None:
    """End the sessions that a connection opened, which is gone (rule 407)."""
    closed = sessions.on_disconnect(connection_id)
    for session in closed.sessions:
        group_id, member_id = session.key
        keys = [SharePartitionKey(group_id, *place) for place in session.partitions]
        partitions.release(member_id, keys)
    for group_id in closed.groups:
        partitions.drop_group(group_id)


def handle(
    request: ShareAcknowledgeRequest, context: "RequestContext"
) -> ShareAcknowledgeResponse | Deferred[ShareAcknowledgeResponse]:
    """Acknowledge; answer when it is written."""
    check_enabled(context)
    key = check_member(request.group_id, request.member_id)
    epoch = request.share_session_epoch
    sessions = context.services.share_sessions
    if epoch == INITIAL_EPOCH:
        raise KafkaError(
            ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a share session is opened by ShareFetch"
        )
    if epoch == FINAL_EPOCH:
        sessions.find(key)
    else:
        sessions.advance(key, epoch)
    done = acknowledge(
        key,
        (
            (
                TopicIdPartition(topic.topic_id, partition.partition_index),
                partition.acknowledgement_batches,
            )
            for topic in request.topics
            for partition in topic.partitions
        ),
        is_renewal=request.is_renew_ack,
        context=context,
    )
    if done.is_done:
        return _respond(request, done, key, context)

    async def wait() -> ShareAcknowledgeResponse:
        # The persister gives up after a number of attempts, so this has an end.
        while not done.is_done:
            changed = trio.Event()
            done.watch(changed.set)
            await changed.wait()
        return _respond(request, done, key, context)

    return Deferred(wait)


def refuse(
    request: ShareAcknowledgeRequest, error: KafkaError, context: "RequestContext"
) -> ShareAcknowledgeResponse:
    """Answer the error at the top level."""
    del request, context
    return ShareAcknowledgeResponse(error_code=error.code)


def _respond(
    request: ShareAcknowledgeRequest,
    done: Acknowledged,
    key: SessionKey,
    context: "RequestContext",
) -> ShareAcknowledgeResponse:
    if request.share_session_epoch == FINAL_EPOCH:
        release_session(key, context)
    leaders = CurrentLeaders(context)
    topics: dict[Any, ShareAcknowledgeTopicResponse] = {}
    for place, error in done.results():
        data = PartitionData(partition_index=place.partition)
        if error is not None:
            data.error_code = error.code
            data.error_message = error.message or None
            if error.code in MOVED_LEADER:
                leader = leaders.of(None, *place)
                if leader is not None:
                    data.current_leader = LeaderIdAndEpoch(
                        leader_id=leader[0], leader_epoch=leader[1]
                    )
        topic = topics.setdefault(
            place.topic_id, ShareAcknowledgeTopicResponse(topic_id=place.topic_id)
        )
        topic.partitions.append(data)
    config = context.services.group_configs(key.group_id)
    return ShareAcknowledgeResponse(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=config.share_record_lock_duration_ms,
        responses=[*topics.values()],
        node_endpoints=[
            NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
            for each in leaders.endpoints()
        ],
    )


HANDLERS = (Handler(SHARE_ACKNOWLEDGE, handle, refuse),)
