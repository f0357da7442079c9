"""Errors that a pipeline reports instead of a traceback."""

import re

#: Java prefixes its messages with the class, once per cause: "java.util…ExecutionException: org…".
_JAVA_CLASS = re.compile(r"^(?:[a-z][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error)?:?\s*")

#: Spark's analyser ends its messages with a code of the SQL standard and a place.
_SQL_STATE = re.compile(r"\s*SQLSTATE: .*$")
#: The end of a Python traceback: what a Python worker of Spark raised.
_RAISED = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?:[\w.]+: )?(?P<message>.+)$",
    re.MULTILINE,
)


class PipelineError(Exception):
    """A pipeline cannot start or go on; the message is one plain line for the person who ran it."""


def plain_line(error: BaseException) -> str:
    """Return the one line of an error that a person needs.

    For an error that came out of the Java machine this is the message of the innermost cause,
    without class names and stack; Spark wraps the broker's own words three or four times.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    text = _innermost_message(java) if java is not None else ""
    raised = _RAISED.search(text) or _RAISED.search(str(error))
    if raised:
        return raised["message"]
    text = text or str(error) or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[0] if lines else type(error).__name__
    return _SQL_STATE.sub("", _JAVA_CLASS.sub("", line)) or line


def _innermost_message(java: object) -> str:
    """Return the message of the last cause that has one; at most 20 causes are followed."""
    message = ""
    for _ in range(20):
        if java is None:
            break
        found = java.getMessage()  # type: ignore[attr-defined]
        message = str(found) if found else message
        java = java.getCause()  # type: ignore[attr-defined]
    return message
