"""Which names topics may have (rule 22)."""

import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

TOPIC_NAME_LENGTH_MAX = 249
"""With `-` and a partition number of five digits a directory name stays within 255 bytes."""

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
"""Name of Apache Kafka's metadata log, whose directory may lie beside those of topics."""

ALIKE_PLACES_MAX: Final = 8
"""Names with more of '.' and '_' have too many that are alike to try all of them."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def refusal_of_name(name: str) -> str | None:
    """Return why a topic cannot have this name, None if it can."""
    if not name:
        return "Topic name is invalid: it is empty"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is a directory of its own"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return (
            f"Topic name is invalid: it has {len(name)} characters, at most "
            f"{TOPIC_NAME_LENGTH_MAX} are allowed"
        )
    if not _LEGAL.fullmatch(name):
        return f"Topic name is invalid: '{name}' may hold ASCII letters, digits, '.', '_' and '-'"
    return None


def can_collide(name: str) -> bool:
    """Whether there may be another name that metrics could not tell from this one."""
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Return what two names share that metrics could not tell apart."""
    return name.replace(".", "_")


def alike(name: str) -> Iterator[str]:
    """Yield the other names that differ from this one only by '.' and '_', for the first of them.

    Of a name with many of these only those with one of them changed are looked at.
    """
    places = [index for index, letter in enumerate(name) if letter in "._"]
    if len(places) > ALIKE_PLACES_MAX:
        variants = (name[:at] + ("_" if name[at] == "." else ".") + name[at + 1 :] for at in places)
    else:
        variants = (_with(name, places, letters) for letters in product("._", repeat=len(places)))
    return (variant for variant in variants if variant != name)


def _with(name: str, places: list[int], letters: Iterable[str]) -> str:
    changed = [*name]
    for place, letter in zip(places, letters, strict=True):
        changed[place] = letter
    return "".join(changed)
