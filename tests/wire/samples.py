"""Random messages, and the list of every message at every version."""

import random
from uuid import UUID

from kafkalite.wire.apis import APIS
from kafkalite.wire.primitives import Bool, Float64, UInt16, UuidLeaf
from kafkalite.wire.schema import ArrayOf, TextShape

TEXTS = ("", "a", "topic-1", "grüße", "日本語" * 20, "x" * 126, "y" * 127, "z" * 300)

CODECS = [
    (api, codec, version)
    for api in APIS.values()
    for codec in (api.request, api.response)
    for version in range(api.versions[0], api.versions[1] + 1)
]


def name_of(case):
    _, codec, version = case
    return f"{codec.record.__name__}-v{version}"


def sample(codec, version, seed=0):
    """Return a random message that holds nothing but what this version can carry."""
    return sample_structure(codec.record, version, random.Random(f"{seed}-{version}"))


def sample_structure(record, version, rng):
    values = {}
    for field in record.FIELDS:
        if not field.exists_at(version):
            continue
        if field.tag is not None and rng.random() < 0.5:
            continue
        if field.is_nullable_at(version) and rng.random() < 0.3:
            values[field.name] = None
        else:
            values[field.name] = sample_value(field.shape, version, rng)
    return record(**values)


def sample_value(shape, version, rng):
    if isinstance(shape, type):
        return sample_structure(shape, version, rng)
    if isinstance(shape, ArrayOf):
        size = rng.choice((0, 1, 1, 2, 3)) if rng.random() < 0.97 else 130
        if isinstance(shape.element, type):
            size = min(size, 3)
        return [sample_value(shape.element, version, rng) for _ in range(size)]
    if isinstance(shape, TextShape):
        text = rng.choice(TEXTS)
        return text if shape.kind == "str" else text.encode()
    if isinstance(shape, UuidLeaf):
        return UUID(int=rng.choice((0, 1, rng.getrandbits(128))))
    if shape is Bool:
        return rng.random() < 0.5
    if shape is Float64:
        return rng.choice((0.0, 1.5, -1e300, rng.random()))
    if shape is UInt16:
        return rng.choice((0, 1, 2**16 - 1, rng.getrandbits(16)))
    bits = 8 * shape.sizeof() - 1
    return rng.choice((0, 1, -1, 2**bits - 1, -(2**bits), rng.getrandbits(bits)))
