"""A chain of workers that consume, transform and produce in transactions, under faults."""
