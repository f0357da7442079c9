"""franz-go."""
