"""Decisions about quotas of users, clients and addresses (KIP-546)."""

from ipaddress import ip_address
from typing import Final

from kafkalite.meta.changes import Change
from kafkalite.meta.entities import changed_settings, client_resource, ip_resource, user_resource
from kafkalite.meta.events import AlterClientQuota
from kafkalite.meta.image import ConfigResource, Image
from kafkalite.quota.limits import CLIENT_ID, CLIENT_QUOTAS, IP, IP_QUOTAS, USER
from kafkalite.settings.config_def import ConfigType, format_double
from kafkalite.wire.errors import ErrorCode, KafkaError

FRACTION_MAX: Final = 1e-6
"""What a whole number may be off by, as it is sent as a fraction."""

LARGEST: Final = {ConfigType.INT: 2**31 - 1, ConfigType.LONG: 2**63 - 1}


def alter_client_quota(event: AlterClientQuota, image: Image) -> list[Change]:
    """Give a user, a client, both together or an address other quotas.

    Raises:
        KafkaError: INVALID_REQUEST (rule 558).
    """
    resource = _resource(dict(event.entity))
    known = IP_QUOTAS if IP in dict(event.entity) else CLIENT_QUOTAS
    values: dict[str, str | None] = {}
    for name, value in event.quotas:
        if name in values:
            raise _refused(f"quota {name} is given twice")
        if value is not None and name not in known:
            raise _refused(f"Invalid configuration key {name}")
        values[name] = None if value is None else _text(name, known[name], value)
    return changed_settings(resource, values, image)


def _resource(parts: dict[str, str | None]) -> ConfigResource:
    if not parts:
        raise _refused("Invalid empty client quota entity")
    for kind, name in parts.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _refused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(f"Empty {kind} not supported")
    if IP in parts:
        if len(parts) > 1:
            raise _refused("an ip has quotas by itself, not together with a user or client-id")
        return ip_resource(_checked_address(parts[IP]))
    if USER not in parts:
        return client_resource(parts[CLIENT_ID])
    return user_resource(parts[USER], parts.get(CLIENT_ID, ""))


def _checked_address(address: str | None) -> str | None:
    if address is not None:
        try:
            ip_address(address)
        except ValueError:
            raise _refused(f"{address} is no IP address") from None
    return address


def _text(name: str, kind: ConfigType, value: float) -> str:
    """Return a quota as it is stored."""
    if not value > 0:
        raise _refused(f"Quota {name} must be greater than 0")
    if kind is ConfigType.DOUBLE:
        return format_double(value)
    if value > LARGEST[kind]:
        raise _refused(f"Proposed value for {name} is too large for a {kind.name}.")
    if value % 1.0 > FRACTION_MAX:
        raise _refused(f"{name} cannot be a fractional value.")
    return str(min(int(value), LARGEST[kind]))


def _refused(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
