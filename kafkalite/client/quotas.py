"""Quotas of users, clients and addresses, over the wire (KIP-546)."""

from collections.abc import Mapping

from kafkalite.client.cluster import Client
from kafkalite.client.errors import check
from kafkalite.quota.limits import Entity
from kafkalite.wire.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kafkalite.wire.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    DescribeClientQuotasRequest,
)


def list_quotas(client: Client) -> dict[Entity, dict[str, float]]:
    """Return all that have quotas, with these.

    Raises:
        KafkaError: the user may not ask.
    """
    answer = client.any_broker().request(DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest())
    check(answer.error_code, answer.error_message)
    found = {
        tuple(sorted((one.entity_type, one.entity_name) for one in entry.entity)): {
            one.key: one.value for one in entry.values
        }
        for entry in answer.entries or ()
    }
    return dict(sorted(found.items(), key=lambda each: str(each[0])))


def alter_quotas(client: Client, entity: Entity, quotas: Mapping[str, float | None]) -> None:
    """Give an entity other quotas; None removes one.

    Raises:
        KafkaError: INVALID_REQUEST, there is no such quota or entity; or the user may not.
    """
    entry = EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            OpData(key=name, value=0.0 if value is None else value, remove=value is None)
            for name, value in quotas.items()
        ],
    )
    answer = client.ask_controller(
        ALTER_CLIENT_QUOTAS,
        AlterClientQuotasRequest(entries=[entry]),
        errors=lambda message: [one.error_code for one in message.entries],
    )
    for result in answer.entries:
        check(result.error_code, result.error_message)
