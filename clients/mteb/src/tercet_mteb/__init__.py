"""Tercet in mteb."""

from tercet_mteb.encoder import TercetEncoder
from tercet_mteb.search import TercetSearch

__all__ = ["TercetEncoder", "TercetSearch"]
