import pytest

from kafkalite.api import HANDLERS as ALL
from kafkalite.api.api_versions import advertising
from kafkalite.api.metadata import HANDLERS as METADATA_HANDLERS
from kafkalite.api.table import Entry
from kafkalite.meta.changes import CLIENT_METRICS_RESOURCE
from kafkalite.meta.events import AlterConfigs, UpdateFeatures
from kafkalite.meta.features import FEATURES, FeatureUpdate, UpgradeType
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.produce import PRODUCE
from tests.api.metadata_kit import MetadataKit


@pytest.fixture
def kit():
    made = MetadataKit()
    subscribe(made)
    return made


def subscribe(kit):
    kit.submit(
        AlterConfigs(
            resource_type=CLIENT_METRICS_RESOURCE, resource_name="m", configs=[("metrics", "*")]
        )
    )


@pytest.mark.parametrize("is_inter_broker", [False, True])
def test_telemetry_is_told_once_somebody_subscribed_to_it(is_inter_broker):
    kit = MetadataKit()
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")

    def keys():
        response = kit.ask(handler(), request, 4, is_inter_broker=is_inter_broker)
        return {each.api_key for each in response.api_keys}

    before = keys()
    subscribe(kit)
    assert keys() - before == {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


def handler(of=ALL):
    (found,) = [each for each in of if each.api.key is ApiKey.API_VERSIONS]
    return found


def ask(kit, version=4, name="a", software="1", of=ALL):
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software)
    return kit.ask(handler(of), request, version)


def test_what_is_advertised_is_what_is_handled(kit):
    """Architecture rule 5: one list of what is supported."""
    own = Entry.of(handler())
    response = ask(kit, of=[advertising([*map(Entry.of, METADATA_HANDLERS), own])])
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
    assert {each.api.key for each in ALL if not each.inter_broker_only} == set(keys)
    assert all(each.min_version <= each.max_version for each in response.api_keys)


KAFKA_4_3 = {
    0: (0, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 5),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    34: (1, 2),
    35: (1, 5),
    36: (0, 2),
    37: (0, 3),
    38: (1, 3),
    39: (1, 2),
    40: (1, 2),
    41: (1, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    55: (0, 2),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    64: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    71: (0, 0),
    72: (0, 0),
    74: (0, 1),
    75: (0, 0),
    76: (1, 1),
    77: (1, 1),
    78: (1, 2),
    79: (1, 2),
    80: (0, 1),
    81: (0, 0),
    83: (0, 0),
    84: (0, 0),
    85: (0, 1),
    86: (0, 0),
    87: (0, 1),
    88: (0, 0),
    89: (0, 0),
    90: (0, 1),
    91: (0, 0),
    92: (0, 0),
}
"""What a broker of Apache Kafka 4.3.1 advertises to clients; 71 and 72 only with a plug-in."""

MAY_BE_MISSING = {
    *{17, 29, 30, 31, 36, *range(38, 42), *range(48, 52)},  # SASL, ACLs (rule 219), quotas
    *{*range(76, 80), *range(83, 88), *range(90, 93)},  # share groups (rule 161)
    *{88, 89},  # streams groups
    27,  # for brokers alone, which Kafka says by refusing
}


def test_every_key_of_kafkas_clients_is_answered_in_every_version(kit):
    """Rule 276."""
    ranges = {each.api_key: (each.min_version, each.max_version) for each in ask(kit).api_keys}
    missing = set(KAFKA_4_3) - set(ranges)
    assert missing <= MAY_BE_MISSING
    assert ranges == {key: each for key, each in KAFKA_4_3.items() if key not in missing}


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
    assert supported(4) == {row.name: (row.min_level, row.max_level) for row in FEATURES}


def finalized(kit):
    response = ask(kit, 3)
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    return response.finalized_features_epoch, levels


def test_finalised_levels_follow_the_metadata_and_a_later_epoch_tells_later_ones(kit):
    """Rule 271."""
    epoch, levels = finalized(kit)
    assert levels == {row.name: row.max_level for row in FEATURES}
    lower = FeatureUpdate("transaction.version", 1, UpgradeType.SAFE_DOWNGRADE)
    kit.submit(UpdateFeatures(updates=[lower]))
    later, changed = finalized(kit)
    assert later > epoch >= 0
    assert changed == {**levels, "transaction.version": 1}


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


def test_what_brokers_ask_each_other_is_not_advertised_to_clients(kit):
    assert not {4, 5, 6, 7, 56, 58} & {each.api_key for each in ask(kit).api_keys}
