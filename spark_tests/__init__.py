"""Real PySpark jobs against a running broker."""
