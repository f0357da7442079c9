"""Share groups (KIP-932): share partitions, and the coordinator that keeps their state."""
