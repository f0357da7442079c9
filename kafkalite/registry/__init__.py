"""The schema registry: Confluent's REST API, with its state in the topic `_schemas`."""
