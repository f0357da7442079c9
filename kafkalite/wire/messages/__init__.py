"""All messages that can be spoken, one module per API; `kafkalite.wire.apis` lists them."""
