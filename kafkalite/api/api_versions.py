"""ApiVersions (key 18), versions 0-4: what this broker answers (rules 5-8).

What only brokers may ask is left out on listeners that they do not come in by, and telemetry as
long as nobody subscribed to it.

v3: name and version of the client's software (KIP-511), features (KIP-584). v4: features whose
least version is 0 (KIP-1022). A version that is too new is answered in v0 with error 35 and this
one API's range, so that the client can try again.
"""

import re
from collections.abc import Iterable

from kafkalite.api import HANDLERS as SERVED
from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.table import Entry
from kafkalite.meta.changes import CLIENT_METRICS_RESOURCE
from kafkalite.meta.features import FEATURES, finalized_levels
from kafkalite.wire.api import ApiKey
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
TELEMETRY = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
"""Told once there is a subscription: librdkafka logs a line, each client asks (decision 0072)."""
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)
"""What a client may call its software and its version (KIP-511)."""


def advertising(table: Iterable[Entry]) -> Handler:
    """Return the handler that tells clients of what is in `table`, and brokers of all of it."""
    entries = sorted(table)
    keys = [_range(entry) for entry in entries]
    keys_of_clients = [_range(entry) for entry in entries if not entry.inter_broker_only]
    without_telemetry = [key for key in keys if key.api_key not in TELEMETRY]
    without_telemetry_of_clients = [key for key in keys_of_clients if key.api_key not in TELEMETRY]
    supported_from_0 = [
        SupportedFeatureKey(name=each.name, min_version=each.min_level, max_version=each.max_level)
        for each in FEATURES
    ]
    supported = [each for each in supported_from_0 if each.min_version > 0]

    def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
        if context.api_version >= FIRST_VERSION_WITH_SOFTWARE:
            for value in (request.client_software_name, request.client_software_version):
                if not SOFTWARE_NAME.fullmatch(value):
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"software {value!r}")
            context.client_software = (
                request.client_software_name,
                request.client_software_version,
            )
        image = context.services.metadata.image
        told, told_clients = keys, keys_of_clients
        if not any(resource.type == CLIENT_METRICS_RESOURCE for resource in image.configs):
            told, told_clients = without_telemetry, without_telemetry_of_clients
        has_0 = context.api_version >= FIRST_VERSION_WITH_FEATURES_FROM_0
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE,
            api_keys=told if context.is_inter_broker else told_clients,
            supported_features=supported_from_0 if has_0 else supported,
            # As Kafka's, the offset of the metadata: a later one tells of later levels.
            finalized_features_epoch=image.version,
            finalized_features=[
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in finalized_levels(image.feature_levels).items()
            ],
        )

    return Handler(API_VERSIONS, handle, refuse)


def refuse(
    request: ApiVersionsRequest | None, error: KafkaError, context: RequestContext
) -> ApiVersionsResponse:
    """Answer the error; for a version that is too new, with the range to choose from (rule 5)."""
    del request, context
    too_new = error.code is ErrorCode.UNSUPPORTED_VERSION
    return ApiVersionsResponse(error_code=error.code, api_keys=[_range(_OWN)] if too_new else [])


def _range(entry: Entry) -> ApiVersion:
    return ApiVersion(api_key=entry.key, min_version=entry.first, max_version=entry.last)


HANDLERS = (advertising(SERVED.table),)
_OWN = Entry.of(*HANDLERS)
