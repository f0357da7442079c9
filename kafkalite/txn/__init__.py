"""Transactions: their coordinator, and the markers that end them (KIP-98, KIP-890)."""
