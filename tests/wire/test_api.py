"""The list of APIs, and the bytes of ApiVersions as written down by hand."""

import pytest

from kafkalite.wire.api import FLEXIBLE_FROM, Api, ApiKey
from kafkalite.wire.apis import APIS
from kafkalite.wire.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafkalite.wire.messages.produce import PRODUCE

RESPONSE = ApiVersionsResponse(
    error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)]
)
FEATURES = ApiVersionsResponse(
    api_keys=[ApiVersion(api_key=1, min_version=4, max_version=12)],
    throttle_time_ms=5,
    supported_features=[SupportedFeatureKey(name="f", min_version=1, max_version=2)],
    finalized_features_epoch=3,
    finalized_features=[FinalizedFeatureKey(name="f", max_version_level=2, min_version_level=1)],
    zk_migration_ready=True,
)
PLAIN_KEYS = "0023 00000001 0012 0000 0004"
FEATURES_HEX = (
    "0000 02 0001 0004 000c 00 00000005"
    "04"
    "00 08 02 02 66 0001 0002 00"
    "01 08 0000000000000003"
    "02 08 02 02 66 0002 0001 00"
    "03 01 01"
)


@pytest.mark.parametrize(
    ("version", "message", "golden"),
    [
        (0, RESPONSE, PLAIN_KEYS),
        (1, RESPONSE, PLAIN_KEYS + "00000000"),
        (2, RESPONSE, PLAIN_KEYS + "00000000"),
        (3, RESPONSE, "0023 02 0012 0000 0004 00 00000000 00"),
        (4, RESPONSE, "0023 02 0012 0000 0004 00 00000000 00"),
        (3, FEATURES, FEATURES_HEX),
        (4, FEATURES, FEATURES_HEX),
    ],
)
def test_api_versions_responses_are_these_bytes(version, message, golden):
    raw = bytes.fromhex(golden)
    assert b"".join(API_VERSIONS.encode_response(version, message)) == raw
    assert API_VERSIONS.decode_response(version, raw) == message


@pytest.mark.parametrize(
    ("version", "message", "golden"),
    [
        (0, ApiVersionsRequest(), ""),
        (1, ApiVersionsRequest(), ""),
        (2, ApiVersionsRequest(), ""),
        (
            3,
            ApiVersionsRequest(client_software_name="kl", client_software_version="1"),
            "03 6b6c 02 31 00",
        ),
        (
            4,
            ApiVersionsRequest(client_software_name="kl", client_software_version="1"),
            "03 6b6c 02 31 00",
        ),
    ],
)
def test_api_versions_requests_are_these_bytes(version, message, golden):
    raw = bytes.fromhex(golden)
    assert b"".join(API_VERSIONS.encode_request(version, message)) == raw
    assert API_VERSIONS.decode_request(version, raw) == message


def test_produce_is_advertised_from_0_but_decoded_from_3():
    """KAFKA-18659: librdkafka before 2.11.1 stops compressing otherwise."""
    assert PRODUCE.advertise_from == 0
    assert [PRODUCE.supports(version) for version in (2, 3, 13, 14)] == [False, True, True, False]


def test_other_apis_are_advertised_as_they_are_decoded():
    others = [api for api in APIS.values() if api is not PRODUCE]
    assert [api.advertise_from for api in others] == [api.versions[0] for api in others]


def test_every_key_has_its_first_flexible_version():
    assert set(FLEXIBLE_FROM) == set(ApiKey)


def test_apis_are_known_by_their_key():
    assert APIS[ApiKey.API_VERSIONS] is API_VERSIONS
    assert all(isinstance(api, Api) and api.key is key for key, api in APIS.items())


def test_an_api_is_printed_with_its_versions():
    assert repr(PRODUCE) == "<Api PRODUCE v3-13>"
