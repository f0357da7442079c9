"""All APIs that can be spoken; whoever needs a few imports those, and starts sooner."""

from kafkalite.wire.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from kafkalite.wire.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from kafkalite.wire.messages.add_raft_voter import ADD_RAFT_VOTER
from kafkalite.wire.messages.allocate_producer_ids import ALLOCATE_PRODUCER_IDS
from kafkalite.wire.messages.alter_client_quotas import ALTER_CLIENT_QUOTAS
from kafkalite.wire.messages.alter_configs import ALTER_CONFIGS
from kafkalite.wire.messages.alter_partition import ALTER_PARTITION
from kafkalite.wire.messages.alter_partition_reassignments import ALTER_PARTITION_REASSIGNMENTS
from kafkalite.wire.messages.alter_replica_log_dirs import ALTER_REPLICA_LOG_DIRS
from kafkalite.wire.messages.alter_share_group_offsets import ALTER_SHARE_GROUP_OFFSETS
from kafkalite.wire.messages.alter_user_scram_credentials import ALTER_USER_SCRAM_CREDENTIALS
from kafkalite.wire.messages.api_versions import API_VERSIONS
from kafkalite.wire.messages.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from kafkalite.wire.messages.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT
from kafkalite.wire.messages.controlled_shutdown import CONTROLLED_SHUTDOWN
from kafkalite.wire.messages.create_acls import CREATE_ACLS
from kafkalite.wire.messages.create_delegation_token import CREATE_DELEGATION_TOKEN
from kafkalite.wire.messages.create_partitions import CREATE_PARTITIONS
from kafkalite.wire.messages.create_topics import CREATE_TOPICS
from kafkalite.wire.messages.delete_acls import DELETE_ACLS
from kafkalite.wire.messages.delete_groups import DELETE_GROUPS
from kafkalite.wire.messages.delete_records import DELETE_RECORDS
from kafkalite.wire.messages.delete_share_group_offsets import DELETE_SHARE_GROUP_OFFSETS
from kafkalite.wire.messages.delete_share_group_state import DELETE_SHARE_GROUP_STATE
from kafkalite.wire.messages.delete_topics import DELETE_TOPICS
from kafkalite.wire.messages.describe_acls import DESCRIBE_ACLS
from kafkalite.wire.messages.describe_client_quotas import DESCRIBE_CLIENT_QUOTAS
from kafkalite.wire.messages.describe_cluster import DESCRIBE_CLUSTER
from kafkalite.wire.messages.describe_configs import DESCRIBE_CONFIGS
from kafkalite.wire.messages.describe_delegation_token import DESCRIBE_DELEGATION_TOKEN
from kafkalite.wire.messages.describe_groups import DESCRIBE_GROUPS
from kafkalite.wire.messages.describe_log_dirs import DESCRIBE_LOG_DIRS
from kafkalite.wire.messages.describe_producers import DESCRIBE_PRODUCERS
from kafkalite.wire.messages.describe_quorum import DESCRIBE_QUORUM
from kafkalite.wire.messages.describe_share_group_offsets import DESCRIBE_SHARE_GROUP_OFFSETS
from kafkalite.wire.messages.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from kafkalite.wire.messages.describe_transactions import DESCRIBE_TRANSACTIONS
from kafkalite.wire.messages.describe_user_scram_credentials import DESCRIBE_USER_SCRAM_CREDENTIALS
from kafkalite.wire.messages.elect_leaders import ELECT_LEADERS
from kafkalite.wire.messages.end_txn import END_TXN
from kafkalite.wire.messages.envelope import ENVELOPE
from kafkalite.wire.messages.expire_delegation_token import EXPIRE_DELEGATION_TOKEN
from kafkalite.wire.messages.fetch import FETCH
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR
from kafkalite.wire.messages.get_telemetry_subscriptions import GET_TELEMETRY_SUBSCRIPTIONS
from kafkalite.wire.messages.heartbeat import HEARTBEAT
from kafkalite.wire.messages.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from kafkalite.wire.messages.init_producer_id import INIT_PRODUCER_ID
from kafkalite.wire.messages.initialize_share_group_state import INITIALIZE_SHARE_GROUP_STATE
from kafkalite.wire.messages.join_group import JOIN_GROUP
from kafkalite.wire.messages.leave_group import LEAVE_GROUP
from kafkalite.wire.messages.list_config_resources import LIST_CONFIG_RESOURCES
from kafkalite.wire.messages.list_groups import LIST_GROUPS
from kafkalite.wire.messages.list_offsets import LIST_OFFSETS
from kafkalite.wire.messages.list_partition_reassignments import LIST_PARTITION_REASSIGNMENTS
from kafkalite.wire.messages.list_transactions import LIST_TRANSACTIONS
from kafkalite.wire.messages.metadata import METADATA
from kafkalite.wire.messages.offset_commit import OFFSET_COMMIT
from kafkalite.wire.messages.offset_delete import OFFSET_DELETE
from kafkalite.wire.messages.offset_fetch import OFFSET_FETCH
from kafkalite.wire.messages.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from kafkalite.wire.messages.produce import PRODUCE
from kafkalite.wire.messages.push_telemetry import PUSH_TELEMETRY
from kafkalite.wire.messages.read_share_group_state import READ_SHARE_GROUP_STATE
from kafkalite.wire.messages.read_share_group_state_summary import READ_SHARE_GROUP_STATE_SUMMARY
from kafkalite.wire.messages.remove_raft_voter import REMOVE_RAFT_VOTER
from kafkalite.wire.messages.renew_delegation_token import RENEW_DELEGATION_TOKEN
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE
from kafkalite.wire.messages.share_acknowledge import SHARE_ACKNOWLEDGE
from kafkalite.wire.messages.share_fetch import SHARE_FETCH
from kafkalite.wire.messages.share_group_describe import SHARE_GROUP_DESCRIBE
from kafkalite.wire.messages.share_group_heartbeat import SHARE_GROUP_HEARTBEAT
from kafkalite.wire.messages.streams_group_describe import STREAMS_GROUP_DESCRIBE
from kafkalite.wire.messages.streams_group_heartbeat import STREAMS_GROUP_HEARTBEAT
from kafkalite.wire.messages.sync_group import SYNC_GROUP
from kafkalite.wire.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from kafkalite.wire.messages.unregister_broker import UNREGISTER_BROKER
from kafkalite.wire.messages.update_features import UPDATE_FEATURES
from kafkalite.wire.messages.write_share_group_state import WRITE_SHARE_GROUP_STATE
from kafkalite.wire.messages.write_txn_markers import WRITE_TXN_MARKERS

APIS = {
    api.key: api
    for api in (
        ADD_OFFSETS_TO_TXN,
        ADD_PARTITIONS_TO_TXN,
        ADD_RAFT_VOTER,
        ALLOCATE_PRODUCER_IDS,
        ALTER_CLIENT_QUOTAS,
        ALTER_CONFIGS,
        ALTER_PARTITION,
        ALTER_PARTITION_REASSIGNMENTS,
        ALTER_REPLICA_LOG_DIRS,
        ALTER_SHARE_GROUP_OFFSETS,
        ALTER_USER_SCRAM_CREDENTIALS,
        API_VERSIONS,
        CONSUMER_GROUP_DESCRIBE,
        CONSUMER_GROUP_HEARTBEAT,
        CONTROLLED_SHUTDOWN,
        CREATE_ACLS,
        CREATE_DELEGATION_TOKEN,
        CREATE_PARTITIONS,
        CREATE_TOPICS,
        DELETE_ACLS,
        DELETE_GROUPS,
        DELETE_RECORDS,
        DELETE_SHARE_GROUP_OFFSETS,
        DELETE_SHARE_GROUP_STATE,
        DELETE_TOPICS,
        DESCRIBE_ACLS,
        DESCRIBE_CLIENT_QUOTAS,
        DESCRIBE_CLUSTER,
        DESCRIBE_CONFIGS,
        DESCRIBE_DELEGATION_TOKEN,
        DESCRIBE_GROUPS,
        DESCRIBE_LOG_DIRS,
        DESCRIBE_PRODUCERS,
        DESCRIBE_QUORUM,
        DESCRIBE_SHARE_GROUP_OFFSETS,
        DESCRIBE_TOPIC_PARTITIONS,
        DESCRIBE_TRANSACTIONS,
        DESCRIBE_USER_SCRAM_CREDENTIALS,
        ELECT_LEADERS,
        END_TXN,
        ENVELOPE,
        EXPIRE_DELEGATION_TOKEN,
        FETCH,
        FIND_COORDINATOR,
        GET_TELEMETRY_SUBSCRIPTIONS,
        HEARTBEAT,
        INCREMENTAL_ALTER_CONFIGS,
        INITIALIZE_SHARE_GROUP_STATE,
        INIT_PRODUCER_ID,
        JOIN_GROUP,
        LEAVE_GROUP,
        LIST_CONFIG_RESOURCES,
        LIST_GROUPS,
        LIST_OFFSETS,
        LIST_PARTITION_REASSIGNMENTS,
        LIST_TRANSACTIONS,
        METADATA,
        OFFSET_COMMIT,
        OFFSET_DELETE,
        OFFSET_FETCH,
        OFFSET_FOR_LEADER_EPOCH,
        PRODUCE,
        PUSH_TELEMETRY,
        READ_SHARE_GROUP_STATE,
        READ_SHARE_GROUP_STATE_SUMMARY,
        REMOVE_RAFT_VOTER,
        RENEW_DELEGATION_TOKEN,
        SASL_AUTHENTICATE,
        SASL_HANDSHAKE,
        SHARE_ACKNOWLEDGE,
        SHARE_FETCH,
        SHARE_GROUP_DESCRIBE,
        SHARE_GROUP_HEARTBEAT,
        STREAMS_GROUP_DESCRIBE,
        STREAMS_GROUP_HEARTBEAT,
        SYNC_GROUP,
        TXN_OFFSET_COMMIT,
        UNREGISTER_BROKER,
        UPDATE_FEATURES,
        WRITE_SHARE_GROUP_STATE,
        WRITE_TXN_MARKERS,
    )
}
"""Every API with a declaration, by key; a broker answers those that it has a handler for."""
