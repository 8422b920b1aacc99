"""Tercet on Ray Serve: encoders, shards and routers as deployments of one application."""
