"""Cluster metadata: what there is, who decides about it, and where that is kept."""
