"""Subscriptions by pattern: RE2, as in Kafka, which knows no input that takes it long (KIP-848).

Java's brokers have RE2/J, here it is RE2 itself (package google-re2). Both refuse what needs
backtracking, look-ahead or a back-reference, and bound what a pattern may cost.
"""

from collections.abc import Callable, Iterable

from kafkalite.wire.errors import ErrorCode, KafkaError

PATTERN_SIZE_MAX = 10_000
"""Characters of a pattern. RE2 bounds what it makes of it (8 MiB), at a cost of milliseconds."""


def check_pattern(pattern: str) -> None:
    """Refuse what is no pattern.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    _compiled(pattern)


def matching_topics(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a pattern matches from beginning to end.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    matches = _compiled(pattern)
    return frozenset(name for name in names if matches(name))


def _compiled(pattern: str) -> Callable[[str], object]:
    """Return what says whether a pattern matches the whole of a text."""
    # 9 ms and 2 MB that brokers without such subscriptions do not pay.
    import re2

    if len(pattern) > PATTERN_SIZE_MAX:
        raise _invalid(pattern[:80], f"it is longer than {PATTERN_SIZE_MAX} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        matches: Callable[[str], object] = re2.compile(pattern, options).fullmatch
    except re2.error as error:
        (reason,) = error.args or ("",)
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise _invalid(pattern, text) from None
    return matches


def _invalid(pattern: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}.",
    )
