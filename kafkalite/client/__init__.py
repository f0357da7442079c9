"""A small synchronous Kafka client, for the command line and for tests.

It works against any Kafka from 2.1 on. It is no replacement for a real client library: no threads,
no groups to be a member of, one request in flight.
"""
