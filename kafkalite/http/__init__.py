"""The HTTP port: requests, routes, who may ask, and the server. Knows nothing of Kafka."""
