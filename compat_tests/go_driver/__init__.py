"""What the drivers of the Go clients share; a driver is built from it and the client's folder."""
