"""Share groups (KIP-932): members, what they are assigned, and which share partitions there are."""
