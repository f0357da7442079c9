"""Deterministic simulation: a seed decides every message, failure and moment.

Level 1 runs the cores (roles of partitions, controller) over a list of messages; level 2 runs whole
brokers under a mock clock, on a simulated network, disk and metadata store.
"""
