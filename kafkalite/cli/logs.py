"""Log lines as JSON, one object a line, for those who gather them."""

import datetime as dt
import json
import logging
from typing import Final

FIELDS: Final = ("api", "client_id", "peer", "topic", "partition", "group", "error", "duration_ms")
"""What a line may have besides, given as `extra`."""


class JsonFormatter(logging.Formatter):
    """Writes `ts`, `level`, `logger`, `msg`, the fields that are there, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
        line: dict[str, object] = {
            "ts": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "msg": record.getMessage(),
        }
        line |= {name: vars(record)[name] for name in FIELDS if name in vars(record)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
