"""Levels of this process's loggers, as resource BROKER_LOGGER (KIP-412).

Named as Kafka names levels, kept in memory only, as there.
"""

import logging
from collections.abc import Sequence

from kafkalite.meta.events import Operation
from kafkalite.wire.errors import ErrorCode, KafkaError

PACKAGE = "kafkalite"
ROOT = "root"

_LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}


def levels() -> dict[str, str]:
    """Return the level in force of each logger of this package, and of the root."""
    names = [ROOT, *sorted(_names())]
    return {name: _name_of(_logger(name).getEffectiveLevel()) for name in names}


def alter(operations: Sequence[tuple[str, int, str | None]], *, validate_only: bool) -> None:
    """Set levels, or give them back to the parent logger; all or none.

    Raises:
        KafkaError: INVALID_CONFIG for an unknown logger or level, INVALID_REQUEST for another
            operation, or for taking the root's level away.
    """
    known = {ROOT, *_names()}
    for name, operation, value in operations:
        if name not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"There is no logger {name}")
        match operation:
            case Operation.SET if value not in _LEVELS:
                choices = ", ".join(_LEVELS)
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG, f"{name}: '{value}' is no level, use one of {choices}"
                )
            case Operation.SET:
                pass
            case Operation.DELETE if name == ROOT:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The root logger needs a level")
            case Operation.DELETE:
                pass
            case _:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"A level can be set or deleted: {name}"
                )
    if validate_only:
        return
    for name, operation, value in operations:
        level = _LEVELS[value or ""] if operation == Operation.SET else logging.NOTSET
        _logger(name).setLevel(level)


def _names() -> list[str]:
    return [
        name
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and name.split(".")[0] == PACKAGE
    ]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(name)


def _name_of(level: int) -> str:
    """Return the nearest level that Kafka has a name for."""
    return next((name for name, number in _LEVELS.items() if level >= number), "TRACE")
