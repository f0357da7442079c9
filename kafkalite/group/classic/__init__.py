"""Classic groups: the JoinGroup, SyncGroup, Heartbeat and LeaveGroup protocol."""
