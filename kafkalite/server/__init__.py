"""The composition of a broker, and its life from start to stop."""
