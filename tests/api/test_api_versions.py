import pytest

from kafkalite.api import HANDLERS as ALL
from kafkalite.api.api_versions import handlers
from kafkalite.api.metadata import HANDLERS as METADATA_HANDLERS
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.produce import PRODUCE
from tests.api.metadata_kit import MetadataKit


@pytest.fixture
def kit():
    return MetadataKit()


def handler(of=ALL):
    (found,) = [each for each in of if each.api.key is ApiKey.API_VERSIONS]
    return found


def ask(kit, version=4, name="a", software="1", of=ALL):
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software)
    return kit.ask(handler(of), request, version)


def test_what_is_advertised_is_what_is_handled(kit):
    """Architecture rule 5: one list of what is supported."""
    response = ask(kit, of=handlers(METADATA_HANDLERS))
    assert [(each.api_key, each.min_version, each.max_version) for each in response.api_keys] == [
        (3, 0, 13),
        (18, 0, 4),
    ]


@pytest.mark.parametrize("version", range(5))
def test_every_version_lists_each_key_once_with_a_range(kit, version):
    """Never a range that is empty: clients would take it for one that they can use."""
    response = ask(kit, version)
    assert response.error_code == 0
    keys = [each.api_key for each in response.api_keys]
    assert keys == sorted(set(keys))
    assert {each.api.key for each in ALL if not each.between_brokers} == set(keys)
    assert all(each.min_version <= each.max_version for each in response.api_keys)


def test_produce_is_advertised_from_0_and_served_from_3(kit):
    """Older librdkafka sends batches uncompressed otherwise (KAFKA-18659)."""
    (produce,) = [each for each in ask(kit).api_keys if each.api_key == ApiKey.PRODUCE]
    assert produce.min_version == 0
    assert PRODUCE.versions[0] == 3


def test_features_begin_with_v3_and_those_from_0_with_v4(kit):
    """Rule 8."""

    def supported(version):
        return {
            each.name: (each.min_version, each.max_version)
            for each in ask(kit, version).supported_features
        }

    assert supported(2) == {}
    assert supported(3) == {"metadata.version": (7, 30)}
    assert supported(4) == {"metadata.version": (7, 30), "transaction.version": (0, 2)}
    response = ask(kit, 3)
    assert response.finalized_features_epoch >= 0
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    assert finalized == {"metadata.version": 30, "transaction.version": 2}


@pytest.mark.parametrize(
    ("name", "software"),
    [("", "1"), ("a", ""), ("-a", "1"), ("a-", "1"), ("a b", "1"), ("ä", "1"), ("a", "1_0")],
)
def test_a_bad_software_name_is_refused_from_v3(kit, name, software):
    """Rule 6."""
    response = ask(kit, 3, name, software)
    assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    assert ask(kit, 2, name, software).error_code == 0


@pytest.mark.parametrize(("name", "software"), [("a", "1"), ("a.b-c", "1.0-x"), ("A9", "4.3.1")])
def test_software_names_are_accepted(kit, name, software):
    """KIP-511 says which characters."""
    assert ask(kit, 3, name, software).error_code == 0


def test_a_version_that_is_too_new_is_answered_with_the_range(kit):
    """Rule 5: version 0, error 35, one entry, byte for byte."""
    error = KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    response = handler().refuse(None, error, kit.context(0))
    sent = b"".join(map(bytes, API_VERSIONS.encode_response(0, response)))
    assert sent.hex() == "002300000001001200000004"


@pytest.mark.parametrize(
    "absent",
    [
        pytest.param({29, 30, 31}, id="ACLs (rule 219)"),
        pytest.param({71, 72}, id="telemetry (rule 222)"),
        pytest.param({68, 69}, id="the new group protocol (rule 161)"),
        pytest.param({4, 5, 6, 7, 56, 58}, id="what brokers ask each other"),
    ],
)
def test_what_is_not_there_is_not_advertised(kit, absent):
    """Clients go without, or say so; they would ask a broker that only refuses for ever."""
    assert not absent & {each.api_key for each in ask(kit).api_keys}
