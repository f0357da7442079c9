"""Schemas of stored records: which fields each version has."""

import pytest

from kafkalite.wire.stored import group_metadata, offset_commit, transaction_log

FIELDS = {
    (offset_commit.OFFSET_COMMIT_KEY, 0): "group topic partition",
    (offset_commit.OFFSET_COMMIT_KEY, 1): "group topic partition",
    (offset_commit.OFFSET_COMMIT_VALUE, 0): "offset metadata commit_timestamp",
    (offset_commit.OFFSET_COMMIT_VALUE, 1): "offset metadata commit_timestamp expire_timestamp",
    (offset_commit.OFFSET_COMMIT_VALUE, 2): "offset metadata commit_timestamp",
    (offset_commit.OFFSET_COMMIT_VALUE, 3): "offset leader_epoch metadata commit_timestamp",
    (
        offset_commit.OFFSET_COMMIT_VALUE,
        4,
    ): "offset leader_epoch metadata commit_timestamp topic_id",
    (group_metadata.GROUP_METADATA_KEY, 2): "group",
    (group_metadata.GROUP_METADATA_VALUE, 0): "protocol_type generation protocol leader members",
    (group_metadata.GROUP_METADATA_VALUE, 1): "protocol_type generation protocol leader members",
    **{
        (group_metadata.GROUP_METADATA_VALUE, version): (
            "protocol_type generation protocol leader current_state_timestamp members"
        )
        for version in (2, 3, 4)
    },
    (transaction_log.TRANSACTION_LOG_KEY, 0): "transactional_id",
    (transaction_log.TRANSACTION_LOG_VALUE, 0): (
        "producer_id producer_epoch transaction_timeout_ms transaction_status "
        "transaction_partitions transaction_last_update_timestamp_ms transaction_start_timestamp_ms"
    ),
    (transaction_log.TRANSACTION_LOG_VALUE, 1): (
        "producer_id previous_producer_id next_producer_id producer_epoch next_producer_epoch "
        "transaction_timeout_ms transaction_status transaction_partitions "
        "transaction_last_update_timestamp_ms transaction_start_timestamp_ms "
        "client_transaction_version"
    ),
}

MEMBER_FIELDS = {
    0: "member_id client_id client_host session_timeout subscription assignment",
    1: "member_id client_id client_host rebalance_timeout session_timeout subscription assignment",
    3: "member_id group_instance_id client_id client_host rebalance_timeout session_timeout "
    "subscription assignment",
}


def names_at(record, version):
    return " ".join(field.name for field in record.FIELDS if field.exists_at(version))


@pytest.mark.parametrize(("codec", "version"), FIELDS)
def test_version_has_the_fields_of_kafkas_definition(codec, version):
    assert names_at(codec.record, version) == FIELDS[codec, version]


@pytest.mark.parametrize("version", MEMBER_FIELDS)
def test_member_has_the_fields_of_kafkas_definition(version):
    assert names_at(group_metadata.MemberMetadata, version) == MEMBER_FIELDS[version]


@pytest.mark.parametrize(("codec", "version"), FIELDS)
def test_default_message_survives(codec, version):
    message = codec.record()
    assert codec.decode_versioned(codec.encode_versioned(version, message)) == (version, message)


def test_every_version_is_named():
    for codec in {codec for codec, _ in FIELDS}:
        first, last = codec.versions
        assert [v for c, v in FIELDS if c is codec] == list(range(first, last + 1))
