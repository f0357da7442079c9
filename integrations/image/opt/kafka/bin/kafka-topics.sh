#!/bin/sh
exec /usr/local/bin/kafka-topics "$@"
