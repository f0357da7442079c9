"""The rows: what is run, and what is wanted of it; one module for each family of loads."""
