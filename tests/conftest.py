"""What holds for all unit tests."""

from hypothesis import settings

# A test that is slow because the machine is busy has not failed.
settings.register_profile("kafkalite", deadline=None)
settings.load_profile("kafkalite")
