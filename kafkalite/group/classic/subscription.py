"""The one thing that the coordinator reads in a consumer's metadata: its topics (rule 155).

Everything else in subscription and assignment is between the clients. Version 0 is a prefix of
all later versions, so it is read whatever the version says: int16 version, array of strings.
"""

import struct

_HEAD = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Return the topics of a ConsumerProtocol subscription; None if it is none."""
    try:
        _, count = _HEAD.unpack_from(metadata)
        position = _HEAD.size
        topics = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, position)
            position += _LENGTH.size
            name = metadata[position : position + length]
            if length < 0 or len(name) < length:
                return None
            topics.append(name.decode())
            position += length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)
