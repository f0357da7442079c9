"""The file format of `server.properties`: that of java.util.Properties."""

import re

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAME = r"(?:[^\\=:\s]|\\.)*"


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the settings of a file; of a name given twice the last counts.

    `#` and `!` begin comments, `=`, `:` or white space part name and value, a backslash at the end
    continues a line, and `\uXXXX` is a character. Trailing white space belongs to the value.
    """
    settings: dict[str, str] = {}
    for line in _logical_lines(text):
        match = re.match(_NAME, line)
        assert match is not None
        name, rest = line[: match.end()], line[match.end() :].lstrip(" \t\f")
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(" \t\f")
        settings[_unescape(name)] = _unescape(rest)
    return settings


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    parts: list[str] = []
    for physical in re.split(r"\r\n|\r|\n", text):
        line = physical.lstrip(" \t\f")
        if not parts and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            parts.append(line[:-1])
            continue
        lines.append("".join([*parts, line]))
        parts = []
    if parts:
        lines.append("".join(parts))
    return lines


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return re.sub(
        r"\\(u[0-9a-fA-F]{4}|.|$)",
        lambda match: (
            chr(int(match[1][1:], 16)) if len(match[1]) == 5 else _ESCAPES.get(match[1], match[1])
        ),
        text,
    )
