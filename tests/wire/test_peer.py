"""Every message against kafka-python's own codec, byte for byte, in both directions."""

import importlib.resources
import re
import warnings

import pytest

from kafkalite.types import ZERO_UUID
from tests.wire import (
    between_brokers,
    consumer_messages,
    other_definitions,
    share_messages,
    streams_messages,
    token_messages,
)
from tests.wire.samples import CODECS, name_of, sample

with warnings.catch_warnings(action="ignore"):
    import kafka.protocol.api_message as kafka_messages

# kafka-python reads its JSON by functions that Python 3.11 calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

SEEDS = 6
DEFINITIONS = {
    **between_brokers.DEFINITIONS,
    **consumer_messages.DEFINITIONS,
    **other_definitions.DEFINITIONS,
    **share_messages.DEFINITIONS,
    **streams_messages.DEFINITIONS,
    **token_messages.DEFINITIONS,
}

PEER_FILES = importlib.resources.files("kafka.protocol.schemas.resources")
KNOWN_TO_PEER = [
    case for case in CODECS if (PEER_FILES / f"{case[1].record.__name__}.json").is_file()
]
"""All but messages between brokers, of which a client has only a part."""


@pytest.fixture(scope="module")
def peer_classes():
    """Make plain classes from the JSON, without the type patches of kafka-python's own."""
    classes = {}

    def peer_class(name):
        if name not in classes:
            classes[name] = kafka_messages.ApiMessageData(name, (kafka_messages.ApiMessage,), {})
        return classes[name]

    return peer_class


def to_peer(message, data_class, version):
    values = {}
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if not field.exists_at(version):
            continue
        if field.tag is not None and value == field.default_value():
            continue
        inner = getattr(data_class, type_name(data_class, field.name), None)
        if isinstance(value, list) and value and hasattr(value[0], "FIELDS"):
            value = [to_peer(element, inner, version) for element in value]
        elif hasattr(value, "FIELDS"):
            value = to_peer(value, inner, version)
        values[field.name] = value
    return data_class(version=version, **values)


def type_name(data_class, name):
    return re.sub(r"^\[\]", "", data_class._struct.fields[name].type_str)


def assert_same(ours, theirs, version):
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_same(our, their, version)
    elif theirs is None:
        # kafka-python's word for null, for an absent tagged structure, and for the zero UUID.
        assert ours is None or ours == ZERO_UUID or ours == ours.default_instance()
    elif hasattr(ours, "FIELDS"):
        for field in ours.FIELDS:
            if field.exists_at(version):
                assert_same(getattr(ours, field.name), getattr(theirs, field.name), version)
    else:
        assert ours == theirs


def test_peer_knows_what_clients_send():
    unknown = {case[1].record.__name__ for case in CODECS} - {
        case[1].record.__name__ for case in KNOWN_TO_PEER
    }
    assert unknown == {
        name
        for name in DEFINITIONS
        if name.endswith(("Request", "Response")) and not (PEER_FILES / f"{name}.json").is_file()
    }


@pytest.mark.parametrize("case", KNOWN_TO_PEER, ids=name_of)
def test_bytes_are_those_of_kafka_python(case, peer_classes):
    _, codec, version = case
    peer_class = peer_classes(codec.record.__name__)
    for seed in range(SEEDS):
        message = sample(codec, version, seed)
        ours = b"".join(codec.encode(version, message))
        theirs = to_peer(message, peer_class, version)
        assert ours == bytes(theirs.encode(version=version))
        assert codec.decode(version, ours) == message
        assert_same(message, peer_class.decode(ours, version=version), version)
