"""Errors on the client's side of the wire, and which refusals are worth another try."""

from typing import Final

from kafkalite.wire.errors import ErrorCode, KafkaError

RETRIABLE: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
    }
)
"""Refusals that pass once the cluster has settled; the broker did nothing of what was asked."""


class ClientError(Exception):
    """No answer, or none that helps; the message is one line for the person who asked."""


def error_of(code: int, message: str | None = None) -> KafkaError | None:
    """Return the error that a response's field holds, None for NONE."""
    if code == ErrorCode.NONE:
        return None
    try:
        return KafkaError(ErrorCode(code), message or "")
    except ValueError:
        text = f"error code {code}: {message}" if message else f"error code {code}"
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def check(code: int, message: str | None = None) -> None:
    """Raise the error that a response's field holds, if it holds one."""
    error = error_of(code, message)
    if error is not None:
        raise error
