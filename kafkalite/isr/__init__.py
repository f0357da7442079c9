"""Replicas of partitions: roles, watermarks, and who waits for them."""
