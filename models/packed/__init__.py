"""Passes of the torch engine over texts laid one after another, without padding."""
