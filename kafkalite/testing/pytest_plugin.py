"""Fixtures for tests that need a broker; registered by the `pytest11` entry point."""
