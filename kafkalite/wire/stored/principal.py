"""Principal of a client, as a broker tells it to the controller in an Envelope (KIP-590)."""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Bool
from kafkalite.wire.schema import String, structure

DefaultPrincipalData = structure(
    "DefaultPrincipalData",
    "principal_type" / String,
    "principal_name" / String,
    "token_authenticated" / Bool,
)

DEFAULT_PRINCIPAL_DATA = Codec(DefaultPrincipalData, versions=(0, 0), flexible_from=0)
