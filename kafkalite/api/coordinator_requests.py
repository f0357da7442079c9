"""Requests to coordinators: asking a shard, and waiting for its answer."""

from collections.abc import Callable, Iterable, Sized
from functools import partial
from typing import TypeVar

from kafkalite.api.context import RequestContext
from kafkalite.coordinator.shard import Event
from kafkalite.deferred import Deferred, Promise
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.primitives import STRING_SIZE_MAX

TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
"""What the log says to a record that is larger than its topic allows."""

SHORT_LENGTH_MAX = STRING_SIZE_MAX // 5
"""Characters that fit whatever they are, of at most four bytes each, and what is added to them."""

SUBSCRIPTION_NAMES_MAX = 20_000
"""Topics that a member may name; chosen by hand: some 15 ms of a heartbeat."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")
Converted = TypeVar("Converted")


def check_group_id(group_id: str) -> None:
    """Refuse an empty group id (rule 126), and one that cannot be stored.

    Raises:
        KafkaError: INVALID_GROUP_ID.
    """
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    if len(group_id) > SHORT_LENGTH_MAX:  # looked at here, for heartbeats are many
        check_size("group id", group_id, ErrorCode.INVALID_GROUP_ID)


def check_size(
    what: str, text: str | None, code: ErrorCode = ErrorCode.INVALID_REQUEST, *, reserved: int = 0
) -> None:
    """Refuse text that no stored record can hold.

    A request cannot hold it either, but for invalid UTF-8: each byte of that becomes U+FFFD, which
    is three.

    Args:
        what: name of the field, for the message of the error.
        text: from a client.
        code: of the refusal.
        reserved: bytes that this broker adds to it.

    Raises:
        KafkaError: `code`.
    """
    size_max = STRING_SIZE_MAX - reserved
    if text and len(text) > SHORT_LENGTH_MAX and len(text.encode()) > size_max:
        raise KafkaError(code, f"the {what} is longer than {size_max} bytes of UTF-8")


def check_subscription(names: Sized | None) -> None:
    """Refuse more topics than a heartbeat can be answered for within a turn.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if names is not None and len(names) > SUBSCRIPTION_NAMES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{len(names)} topics in one subscription; {SUBSCRIPTION_NAMES_MAX} are allowed, more "
            "by a pattern",
        )


def handle_group_request(
    group_id: str, event: Event[Answer], context: RequestContext
) -> Answer | Promise[Answer]:
    """Return a group coordinator's answer, or `Promise`.

    Raises:
        KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, or the shard's refusal.
    """
    return context.services.coordinators.handle(CONSUMER_OFFSETS_TOPIC, group_id, event)


def map_answer(
    answer: Answer | Deferred[Answer], convert: Callable[[Answer], Converted]
) -> Converted | Deferred[Converted]:
    """Return what `convert` makes of an answer, or `Deferred` if it is not there yet."""
    return answer.map(convert) if isinstance(answer, Deferred) else convert(answer)


def gather(
    keys: Iterable[Key],
    ask: Callable[[Key], Answer | Deferred[Answer]],
    failed: Callable[[Key, KafkaError], Answer],
    convert: Callable[[list[Answer]], Converted],
) -> Converted | Deferred[Converted]:
    """Ask for each key by itself, and make one response of the answers.

    Args:
        keys: what is asked for.
        ask: returns an answer, `Deferred`, or raises KafkaError.
        failed: returns the answer for a key whose question was refused.
        convert: makes the response of the answers, which are in the order of the keys.
    """
    answers: list[tuple[Key, Answer | Deferred[Answer]]] = []
    for key in keys:
        try:
            answers.append((key, ask(key)))
        except KafkaError as error:
            answers.append((key, failed(key, error)))
    there = [answer for _, answer in answers if not isinstance(answer, Deferred)]
    if len(there) < len(answers):
        return Deferred(partial(_collect, answers, failed, convert))
    return convert(there)


def client_code(error: KafkaError) -> ErrorCode:
    """Return the code for a refusal where the API has none for records that are too large."""
    return ErrorCode.UNKNOWN_SERVER_ERROR if error.code in TOO_LARGE else error.code


async def _collect(
    answers: list[tuple[Key, Answer | Deferred[Answer]]],
    failed: Callable[[Key, KafkaError], Answer],
    convert: Callable[[list[Answer]], Converted],
) -> Converted:
    collected = []
    for key, answer in answers:
        try:
            collected.append(await answer.wait() if isinstance(answer, Deferred) else answer)
        except KafkaError as error:
            collected.append(failed(key, error))
    return convert(collected)
