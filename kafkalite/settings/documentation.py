"""The text that DescribeConfigs v3+ adds to each setting on request (KIP-569)."""

from functools import cache
from pathlib import Path

from kafkalite.settings.config_def import Setting

_INERT = " Accepted for compatibility with Apache Kafka; kafkalite does not act on it."


def documentation(setting: Setting) -> str:
    """Return what a setting does, in one paragraph."""
    text = _texts()[setting.name]
    return text + _INERT if setting.inert else text


@cache
def _texts() -> dict[str, str]:
    """Read the texts once; apart from the tables, because a start never needs them."""
    texts = {}
    path = Path(__file__).with_name("documentation.txt")
    for line in path.read_text(encoding="utf-8").splitlines():
        name, tab, text = line.partition("\t")
        if tab:
            texts[name] = text
    return texts
