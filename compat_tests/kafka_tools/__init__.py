"""Apache Kafka's command-line tools, 4.x and the last of 3.x."""
