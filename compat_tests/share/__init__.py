"""Share groups by Apache's own clients: what a worker of a queue does, and its tools."""
