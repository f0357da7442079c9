"""Names of users from certificates: the subject as Java writes it, and rules that map it (KIP-371).

The subject is read from the certificate's DER encoding, because Java shows the encoded bytes of
attributes that RFC 2253 has no keyword for (rules 520 and 521).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""Attributes that RFC 2253 has a keyword for."""

_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _UNIVERSAL, _BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E
_ENCODINGS = {
    _UTF8: "utf-8",
    _PRINTABLE: "ascii",
    _T61: "latin-1",
    _IA5: "ascii",
    _GENERAL: "latin-1",
    _UNIVERSAL: "utf-32-be",
    _BMP: "utf-16-be",
}
_SEQUENCE, _SET, _OBJECT_IDENTIFIER, _VERSION = 0x30, 0x31, 0x06, 0xA0
_ESCAPED = frozenset(',=+<>#;"\\')
_SUBJECT_FIELD = 4
"""Place in a certificate after serial number, algorithm, issuer and validity."""

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,\s*|$)"
)


class NoUserName(ValueError):
    """A certificate that gives no name, or rules that cannot be read."""


class _Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """Return the subject of a DER certificate in the form of RFC 2253, as Java's X500Principal.

    Raises:
        NoUserName: it is no certificate.
    """
    try:
        (outer,) = _elements(certificate)
        body = next(_elements(outer.content))
        fields = [each for each in _elements(body.content) if each.tag != _VERSION]
        names = [
            "+".join(_attribute(each) for each in _elements(relative.content))
            for relative in _elements(fields[_SUBJECT_FIELD].content)
        ]
    except (IndexError, ValueError, StopIteration) as error:
        raise NoUserName("this is no X.509 certificate") from error
    return ",".join(reversed(names))


class MappingRules:
    """`ssl.principal.mapping.rules`: the first whose pattern fits the whole name decides.

    Raises:
        NoUserName: they cannot be read.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[re.Pattern[str], str, str] | None] = []
        position = 0
        while position < len(text):
            match = _RULE.match(text, position)
            if match is None or match.end() == position:
                raise NoUserName(
                    f"ssl.principal.mapping.rules: '{text[position:]}' is not allowed, it has to "
                    "be DEFAULT or RULE:pattern/replacement/[LU]"
                )
            position = match.end()
            if match["default"]:
                self._rules.append(None)
                continue
            try:
                pattern = re.compile(match["pattern"].replace("\\/", "/"))
            except re.error as error:
                raise NoUserName(
                    f"ssl.principal.mapping.rules: '{match['pattern']}': {error}"
                ) from None
            self._rules.append((pattern, match["replacement"], match["case"]))

    def name_of(self, subject: str) -> str:
        """Return the name of a user.

        Raises:
            NoUserName: no rule fits.
        """
        for rule in self._rules or [None]:
            if rule is None:
                return subject
            pattern, replacement, case = rule
            match = pattern.fullmatch(subject)
            if match is None:
                continue
            name = _replaced(match, replacement)
            return name.lower() if case == "L" else name.upper() if case == "U" else name
        raise NoUserName(f"no rule of ssl.principal.mapping.rules fits '{subject}'")


def _replaced(match: re.Match[str], replacement: str) -> str:
    """Put groups in where `$1` stands; a `$` of a group that there is not stands for itself."""

    def group(reference: re.Match[str]) -> str:
        number = int(reference[1])
        return match[number] or "" if number <= match.re.groups else reference[0]

    return re.sub(r"\$(\d)", group, replacement.replace("\\/", "/"))


def _attribute(element: _Element) -> str:
    kind, value = _elements(element.content)
    if kind.tag != _OBJECT_IDENTIFIER:
        raise ValueError(kind.tag)
    identifier = _identifier(kind.content)
    keyword, encoding = _KEYWORDS.get(identifier), _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or identifier}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.content.decode(encoding))}"


def _escaped(text: str) -> str:
    """Return a value in which what means something else has a backslash before it."""
    inner = text.strip(" ")
    start = len(text) - len(text.lstrip(" "))
    end = len(text) - start - len(inner)
    escaped = "".join(f"\\{char}" if char in _ESCAPED else char for char in inner)
    return "\\ " * start + escaped.replace("\0", "\\00") + "\\ " * end


def _identifier(content: bytes) -> str:
    numbers: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _elements(data: bytes) -> Iterator[_Element]:
    """Yield the elements of a DER encoding, one after another."""
    position = 0
    while position < len(data):
        start, tag, length = position, data[position], data[position + 1]
        position += 2
        if length >= 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        end = position + length
        if end > len(data):
            raise ValueError(end)
        yield _Element(tag, data[position:end], data[start:end])
        position = end
