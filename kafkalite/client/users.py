"""Users that log in by SCRAM (KIP-554)."""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from kafkalite.client.cluster import Client
from kafkalite.client.errors import check
from kafkalite.security.scram import (
    BY_NUMBER,
    ITERATIONS_MIN,
    SHA_256,
    SHA_512,
    Mechanism,
    salt_password,
)
from kafkalite.wire.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkalite.wire.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
    UserName,
)

BOTH: Final = (SHA_256, SHA_512)
SALT_BYTES: Final = 16


def list_users(client: Client, names: Sequence[str] = ()) -> Mapping[str, list[tuple[str, int]]]:
    """Return mechanism and iterations of each user's credentials, by name; of all users if none.

    Raises:
        KafkaError: RESOURCE_NOT_FOUND for a name that is none.
    """
    request = DescribeUserScramCredentialsRequest(
        users=[UserName(name=name) for name in names] or None
    )
    answer = client.any_broker().request(DESCRIBE_USER_SCRAM_CREDENTIALS, request)
    check(answer.error_code, answer.error_message)
    for result in answer.results:
        check(result.error_code, result.error_message)
    return {
        result.user: [
            (BY_NUMBER[each.mechanism].name, each.iterations)
            for each in result.credential_infos
            if each.mechanism in BY_NUMBER
        ]
        for result in sorted(answer.results, key=lambda one: one.user)
    }


def set_password(
    client: Client, name: str, password: str, mechanisms: Sequence[Mechanism] = BOTH
) -> None:
    """Let a user log in with this password, by any of these mechanisms.

    One request each: a request names a user once.

    Raises:
        KafkaError: it was refused.
    """
    for mechanism in mechanisms:
        salt = os.urandom(SALT_BYTES)
        upsertion = ScramCredentialUpsertion(
            name=name,
            mechanism=mechanism.number,
            iterations=ITERATIONS_MIN,
            salt=salt,
            salted_password=salt_password(mechanism, password, salt, ITERATIONS_MIN),
        )
        _alter(client, AlterUserScramCredentialsRequest(upsertions=[upsertion]))


def remove_user(client: Client, name: str) -> None:
    """Take away all credentials of a user; connections that it has stay.

    Raises:
        KafkaError: RESOURCE_NOT_FOUND, there is no such user.
    """
    for mechanism, _ in list_users(client, [name])[name]:
        number = next(each.number for each in BOTH if each.name == mechanism)
        deletion = ScramCredentialDeletion(name=name, mechanism=number)
        _alter(client, AlterUserScramCredentialsRequest(deletions=[deletion]))


def _alter(client: Client, request: AlterUserScramCredentialsRequest) -> None:
    answer = client.ask_controller(
        ALTER_USER_SCRAM_CREDENTIALS,
        request,
        errors=lambda message: [one.error_code for one in message.results],
    )
    for result in answer.results:
        check(result.error_code, result.error_message)
