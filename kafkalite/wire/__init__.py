"""Bytes to messages and back: framing, headers, message schemas, record batches. Pure."""
