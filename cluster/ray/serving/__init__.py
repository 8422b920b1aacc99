"""Tercet on Ray Serve: encoders and routers as deployments of one application, before ordinary servers."""
