"""Batch index builds that clients ask for over HTTP."""
