"""The group coordinator: classic groups and committed offsets."""
