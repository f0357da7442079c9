"""One module per API, or per family of small ones: what is asked, checked and answered.

`HANDLERS` is the list of what is supported; ApiVersions is computed from it.
"""

from kafkalite.api import (
    allocate_producer_ids,
    alter_partition,
    alter_replica_log_dirs,
    api_versions,
    cluster,
    configs,
    controlled_shutdown,
    delete_records,
    elect_leaders,
    envelope,
    fetch,
    find_coordinator,
    group_admin,
    groups,
    leader_epoch,
    list_offsets,
    log_dirs,
    metadata,
    offsets,
    produce,
    producer_ids,
    producers,
    quorum,
    reassign,
    telemetry,
    topics,
    transactions,
    txn_admin,
    txn_markers,
    txn_offsets,
    unregister_broker,
    update_features,
)
from kafkalite.api.handler import Handler

HANDLERS: tuple[Handler, ...] = api_versions.handlers(
    envelope.handlers(
        (
            *produce.HANDLERS,
            *fetch.HANDLERS,
            *list_offsets.HANDLERS,
            *metadata.HANDLERS,
            *offsets.HANDLERS,
            *find_coordinator.HANDLERS,
            *groups.HANDLERS,
            *group_admin.HANDLERS,
            *topics.HANDLERS,
            *delete_records.HANDLERS,
            *leader_epoch.HANDLERS,
            *configs.HANDLERS,
            *log_dirs.HANDLERS,
            *cluster.HANDLERS,
            *producer_ids.HANDLERS,
            *producers.HANDLERS,
            *transactions.HANDLERS,
            *txn_offsets.HANDLERS,
            *txn_markers.HANDLERS,
            *txn_admin.HANDLERS,
            *reassign.HANDLERS,
            *elect_leaders.HANDLERS,
            *controlled_shutdown.HANDLERS,
            *alter_partition.HANDLERS,
            *allocate_producer_ids.HANDLERS,
            *alter_replica_log_dirs.HANDLERS,
            *update_features.HANDLERS,
            *quorum.HANDLERS,
            *unregister_broker.HANDLERS,
            *telemetry.HANDLERS,
        )
    )
)
