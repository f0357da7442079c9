"""kafkalite: a Kafka-wire-compatible broker in Python."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkalite.testing.broker import Broker as Broker
    from kafkalite.testing.cluster import Cluster as Cluster

__version__ = "0.2.0"

NEEDS_ASSERTIONS = (
    "assertions guard the broker's state: start Python without -O and without PYTHONOPTIMIZE"
)
"""What to tell whoever runs a broker without them."""


def is_compiled() -> bool:
    """Whether this is the compiled build (decision 0171)."""
    from importlib.util import find_spec

    spec = find_spec("kafkalite.wire.framing")
    return spec is not None and not str(spec.origin).endswith(".py")


def __getattr__(name: str) -> Any:
    # `kafkalite.Broker` is the one for tests. It is imported when it is used: everything in the
    # package passes through this module, also what must start fast.
    if name not in ("Broker", "Cluster"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"kafkalite.testing.{name.lower()}"), name)
