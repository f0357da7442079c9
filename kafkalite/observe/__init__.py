"""Observability of a broker and its cluster: health, metrics, the HTTP API, the journal.

Everything here asks by Kafka's own requests (`cluster.Cluster`), so that it answers for any Kafka;
what only a broker knows of itself is in `inside`.
"""
