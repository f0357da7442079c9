"""Codecs for the compiled build do what those made at run time do, with every message there is."""

from functools import cache

import pytest

from kafkalite.wire import codec as codecs
from kafkalite.wire import native
from kafkalite.wire.decoding import lower_decode
from kafkalite.wire.encoding import lower_encode
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.stubs import declaring_modules
from tests.wire.samples import sample

MODULES = [m for m in declaring_modules() if native.codecs_of(m)]
CASES = [
    pytest.param(module, codec, version, id=f"{codec.record.__name__}-v{version}")
    for module in MODULES
    for codec in native.codecs_of(module).values()
    for version in range(codec.versions[0], codec.versions[1] + 1)
]


@cache
def native_of(module):
    """The written module, run by the interpreter."""
    namespace = {}
    exec(compile(native.source_of(module), f"<native {module.__name__}>", "exec"), namespace)
    return namespace


def joined(chunks):
    return b"".join(map(bytes, chunks))


@pytest.mark.parametrize(("module", "codec", "version"), CASES)
def test_bytes_and_messages_are_the_same(module, codec, version):
    made, key = native_of(module), (codec.record.__name__, version)
    encode, decode = made["ENCODERS"][key], made["DECODERS"][key]
    struct_ = codec.at(version)
    for message in (sample(codec, version), codec.record()):
        data = joined(lower_encode(struct_)(message))
        assert joined(encode(message)) == data
        assert decode(data, 0) == lower_decode(struct_)(data, 0)


@pytest.mark.parametrize(("module", "codec", "version"), CASES)
def test_what_is_cut_short_is_refused(module, codec, version):
    decode = native_of(module)["DECODERS"][codec.record.__name__, version]
    whole = joined(lower_encode(codec.at(version))(sample(codec, version)))
    for size in range(len(whole)):
        with pytest.raises((MalformedMessage, IndexError)):
            decode(whole[:size], 0)


@pytest.mark.parametrize(
    "module", ["kafkalite.wire.stored.offset_commit", "kafkalite.wire.messages.none", "__main__"]
)
def test_messages_that_nothing_was_written_for_have_no_such_codecs(module, monkeypatch):
    monkeypatch.setattr(codecs, "_has_native_codecs", lambda: True)
    assert codecs.native_codecs.__wrapped__(module) is None
