"""Parts shared by group and transaction coordinators: shards on a log, and their runtime."""
