"""HTTP service, settings and the online and offline pipelines."""
