"""Adapters: small trained changes of a frozen body, saved apart from it and chosen by name."""
