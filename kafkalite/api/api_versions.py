"""ApiVersions (key 18), versions 0-4: what this broker answers (rules 5-8).

What only brokers may ask is left out on listeners that they do not come in by.

v3: name and version of the client's software (KIP-511), features (KIP-584). v4: features whose
least version is 0 (KIP-1022). A version that is too new is answered in v0 with error 35 and this
one API's range, so that the client can try again.
"""

import re
from collections.abc import Iterable
from typing import Any

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FIRST_VERSION_WITH_SOFTWARE = 3
FIRST_VERSION_WITH_FEATURES_FROM_0 = 4
TRANSACTION_VERSION = "transaction.version"
TRANSACTION_VERSION_LEVEL = 2
"""Clients that can do so write to partitions without adding them first, and have an epoch for each
transaction (KIP-890). The others are served as ever."""
METADATA_VERSION = "metadata.version"
METADATA_VERSION_LEVELS = (7, 30)
"""What a broker of Kafka 4.3 supports; the last is 4.3-IV0. User interfaces tell the version of a
cluster by it, and no client acts on it."""
FEATURES_EPOCH = 1
"""Features are what the code says, so that there is one epoch of them. 0 would do for Kafka's own
clients; -1 means unknown."""
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)
"""What a client may call its software and its version (KIP-511)."""


def handlers(others: Iterable[Handler]) -> tuple[Handler, ...]:
    """Return the handler that advertises `others` and itself."""
    others = tuple(others)
    everyone = [handler.api for handler in others if not handler.between_brokers]
    keys_of_clients = _ranges([*everyone, API_VERSIONS])
    keys = _ranges([*(handler.api for handler in others), API_VERSIONS])
    first, last = METADATA_VERSION_LEVELS
    supported = [SupportedFeatureKey(name=METADATA_VERSION, min_version=first, max_version=last)]
    supported_from_0 = [
        *supported,
        SupportedFeatureKey(
            name=TRANSACTION_VERSION, min_version=0, max_version=TRANSACTION_VERSION_LEVEL
        ),
    ]
    finalized = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in (
            (METADATA_VERSION, last),
            (TRANSACTION_VERSION, TRANSACTION_VERSION_LEVEL),
        )
    ]

    def admit(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        if context.api_version >= FIRST_VERSION_WITH_SOFTWARE:
            for value in (request.client_software_name, request.client_software_version):
                if not SOFTWARE_NAME.fullmatch(value):
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"software {value!r}")
        has_0 = context.api_version >= FIRST_VERSION_WITH_FEATURES_FROM_0
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE,
            api_keys=keys if context.is_inter_broker else keys_of_clients,
            supported_features=supported_from_0 if has_0 else supported,
            finalized_features_epoch=FEATURES_EPOCH,
            finalized_features=finalized,
        )

    return (*others, Handler(API_VERSIONS, admit, refuse))


def refuse(
    request: ApiVersionsRequest | None, error: KafkaError, context: RequestContext
) -> ApiVersionsResponse:
    """Answer the error; for a version that is too new, with the range to choose from (rule 5)."""
    del request, context
    too_new = error.code is ErrorCode.UNSUPPORTED_VERSION
    return ApiVersionsResponse(
        error_code=error.code, api_keys=[_range(API_VERSIONS)] if too_new else []
    )


def _ranges(apis: Iterable[Api[Any, Any]]) -> list[ApiVersion]:
    return sorted(map(_range, apis), key=lambda key: key.api_key)


def _range(api: Api[Any, Any]) -> ApiVersion:
    return ApiVersion(
        api_key=ApiKey(api.key), min_version=api.advertise_from, max_version=api.versions[1]
    )
