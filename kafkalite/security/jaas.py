"""The lines by which Kafka configures logins (`sasl.jaas.config`)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:\\.|[^"\\])*")
      | (?P<sign>[=;])
      | (?P<word>[^\s=;"]+)
    )""",
    re.VERBOSE,
)
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_USER_PREFIX = "user_"


class JaasError(ValueError):
    """A line that cannot be read; it may hold a password, and is not repeated."""


@dataclass(slots=True, frozen=True, kw_only=True)
class LoginModule:
    """A login module's line: `CLASS FLAG name="value" ...;`."""

    class_name: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def users(self) -> dict[str, str]:
        """Passwords by name, as PlainLoginModule has them (`user_alice="secret"`)."""
        return {
            name.removeprefix(_USER_PREFIX): value
            for name, value in self.options.items()
            if name.startswith(_USER_PREFIX)
        }


def parse_jaas(text: str) -> LoginModule:
    """Return the one login module that a line has.

    Raises:
        JaasError: it has none, or several, or ends in the midst of it.
    """
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != (";", True):
        raise JaasError("a login module ends with ';'")
    (class_name, _), (flag, _) = tokens[:2]
    if flag.lower() not in _FLAGS:
        raise JaasError("the class of a login module is followed by 'required'")
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    while rest:
        if len(rest) < 3 or rest[1] != ("=", True) or rest[0][1] or rest[2][1]:
            raise JaasError('options are of the form name="value", for one login module')
        options[rest[0][0]] = rest[2][0]
        rest = rest[3:]
    return LoginModule(class_name=class_name, options=options)


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Return words and values, and signs, which are marked by True."""
    found: list[tuple[str, bool]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError("a quotation mark is not closed")
        position = match.end()
        if match["sign"]:
            found.append((match["sign"], True))
        elif match["quoted"]:
            found.append((re.sub(r"\\(.)", r"\1", match["quoted"][1:-1]), False))
        else:
            found.append((match["word"], False))
    return found
