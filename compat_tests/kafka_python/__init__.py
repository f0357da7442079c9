"""kafka-python, the 2.x and the 3.x line."""
