from kafkalite.api.topics import HANDLERS
from kafkalite.wire.api import ApiKey


def test_the_family_is_complete():
    assert [handler.api.key for handler in HANDLERS] == [
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ]
