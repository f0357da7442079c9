"""Sockets and connections: listeners, the poller that serves them, and dispatch of requests."""
