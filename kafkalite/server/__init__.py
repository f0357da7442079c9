"""The edges: sockets, connections, and the composition of a broker."""
