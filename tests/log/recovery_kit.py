"""Logs that have lived, and what must be left of them."""

from kafkalite.wire.records import iterate_records
from tests.log.log_kit import (
    NotingListener,
)

SMALL = {"segment_bytes": 700, "index_interval_bytes": 150, "segment_ms": 2**60}


class Remover(NotingListener):
    """Removes deleted segments at once, as housekeeping does in the end."""

    def on_segments_removed(self, log, segments):
        for segment in segments:
            segment.remove()


def everything(log):
    """Return (offset, value) of all records in the files, markers included."""
    found = []
    for segment in log.segments:
        for position, header in segment.headers():
            data = segment.file.pread(header.size, position)
            found += [(record.offset, record.value) for record in iterate_records(data)]
    return found
