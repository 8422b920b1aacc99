"""Pre-training on documents: masked language modelling, RetroMAE, Condenser, coCondenser."""
