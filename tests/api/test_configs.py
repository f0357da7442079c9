from kafkalite.api.configs import HANDLERS
from kafkalite.wire.api import ApiKey


def test_the_family_is_complete():
    assert [handler.api.key for handler in HANDLERS] == [
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.LIST_CONFIG_RESOURCES,
    ]
