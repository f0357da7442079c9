"""Values of settings, as tests give them, in the form of server.properties."""

from typing import Any


def setting_text(value: Any) -> str:
    """Return a setting's text: true, false, numbers and lists as server.properties has them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
