"""Parts of the offline pipeline, which `service/indexing.py` joins."""
