"""Consumer groups: partitions are assigned by the broker, member by member (KIP-848)."""
