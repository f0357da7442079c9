"""What group and transaction coordinators share: shards on a log, and the runtime for them."""
