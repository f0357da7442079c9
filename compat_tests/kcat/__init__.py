"""kcat, Debian's package of it."""
