"""The cluster's metadata: what it is, who decides about it, where it is kept."""
