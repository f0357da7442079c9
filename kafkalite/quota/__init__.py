"""How much clients may ask of a broker, and how long they wait when it was more (KIP-219)."""
