#!/bin/sh
exec /usr/local/bin/kafka-broker-api-versions "$@"
