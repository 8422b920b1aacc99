"""Connections: how they are opened, bounded, read and ended."""
