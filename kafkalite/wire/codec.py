"""A message that can be decoded and encoded, its code being made when a version is first used."""

import struct
from collections.abc import Generator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic

from kafkalite.wire.decoding import Decode, DecodeInSteps, lower_decode, lower_decode_in_steps
from kafkalite.wire.encoding import Encode, EncodeInSteps, lower_encode, lower_encode_in_steps
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.lowering import Chunk
from kafkalite.wire.primitives import Buffer
from kafkalite.wire.schema import AnyStructure, Message

_VERSION = struct.Struct(">h")


@cache
def native_codecs(messages: str) -> Any:
    """Return the compiled codecs of a module of messages, None where there are none.

    The compiled build has some (decision 0172).
    """
    package, _, name = messages.rpartition(".")
    if package != "kafkalite.wire.messages" or not _has_native_codecs():
        return None
    try:
        return import_module(f"kafkalite.wire.lowered.{name}")
    except ModuleNotFoundError:
        return None


@cache
def _has_native_codecs() -> bool:
    return find_spec("kafkalite.wire.lowered") is not None


class Codec(Message[AnyStructure], Generic[AnyStructure]):
    """A message with its decoder and encoder for each version.

    Making the code of one version takes about a millisecond, of all versions a second: too much
    for a broker's start, so each is made at its first use.
    """

    def __init__(
        self,
        record: type[AnyStructure],
        *,
        versions: tuple[int, int],
        flexible_from: int | None,
    ) -> None:
        super().__init__(record, versions=versions, flexible_from=flexible_from)
        self._decoders: dict[int, Decode] = {}
        self._encoders: dict[int, Encode] = {}
        self._step_decoders: dict[int, DecodeInSteps] = {}
        self._step_encoders: dict[int, EncodeInSteps] = {}

    def decode(self, version: int, buffer: Buffer, position: int = 0) -> AnyStructure:
        """Return the message that starts at `position`; what follows it is ignored, as by Kafka.

        Fields that the version lacks hold their default. Records are slices of the buffer.

        Raises:
            MalformedMessage: the bytes are no such message.
            ValueError: there is no such version.
        """
        decode = self._decoders.get(version)
        if decode is None:
            decode = self._decoders[version] = self._decoder(version)
        try:
            message: AnyStructure = decode(buffer, position)
        except (struct.error, IndexError) as error:
            name = self.record.__name__
            raise MalformedMessage(f"{name} v{version} is cut short: {error}") from None
        return message

    def encode(self, version: int, message: AnyStructure) -> list[Chunk]:
        """Return the message in chunks; fields that the version lacks are left out.

        A chunk is bytes-like, or an object that was given as records, untouched.

        Raises:
            ValueError: there is no such version.
        """
        encode = self._encoders.get(version)
        if encode is None:
            encode = self._encoders[version] = self._encoder(version)
        try:
            return encode(message)
        except OverflowError as error:
            raise struct.error(str(error)) from None

    def _decoder(self, version: int) -> Decode:
        message = self.at(version)
        native = native_codecs(self.record.__module__)
        if native is None:
            return lower_decode(message)
        decode: Decode = native.DECODERS[self.record.__name__, version]
        return decode

    def _encoder(self, version: int) -> Encode:
        message = self.at(version)
        native = native_codecs(self.record.__module__)
        if native is None:
            return lower_encode(message)
        encode: Encode = native.ENCODERS[self.record.__name__, version]
        return encode

    def decode_in_steps(
        self, version: int, buffer: Buffer, position: int = 0
    ) -> Generator[None, None, AnyStructure]:
        """Return the steps of `decode`; their value is the message. Raises as it does."""
        decode = self._step_decoders.get(version)
        if decode is None:
            decode = self._step_decoders[version] = lower_decode_in_steps(self.at(version))
        try:
            message: AnyStructure = yield from decode(buffer, position)
        except (struct.error, IndexError) as error:
            name = self.record.__name__
            raise MalformedMessage(f"{name} v{version} is cut short: {error}") from None
        return message

    def encode_in_steps(
        self, version: int, message: AnyStructure
    ) -> Generator[None, None, list[Chunk]]:
        """Return the steps of `encode`; their value are the chunks. Raises as it does."""
        encode = self._step_encoders.get(version)
        if encode is None:
            encode = self._step_encoders[version] = lower_encode_in_steps(self.at(version))
        return (yield from encode(message))

    def decode_versioned(self, buffer: Buffer, position: int = 0) -> tuple[int, AnyStructure]:
        """Return (version, message) of a stored key or value: an int16 version comes first."""
        try:
            (version,) = _VERSION.unpack_from(buffer, position)
        except struct.error as error:
            raise MalformedMessage(f"{self.record.__name__}: no version: {error}") from None
        first, last = self.versions
        if not first <= version <= last:
            raise MalformedMessage(f"{self.record.__name__} of unknown version {version}")
        return version, self.decode(version, buffer, position + _VERSION.size)

    def encode_versioned(self, version: int, message: AnyStructure) -> bytes:
        """Return a stored key or value: an int16 version, then the message."""
        return _VERSION.pack(version) + b"".join(self.encode(version, message))  # type: ignore[arg-type]
