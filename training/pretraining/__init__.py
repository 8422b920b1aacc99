"""Pre-training on documents: RetroMAE, Condenser and coCondenser."""
