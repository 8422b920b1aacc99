"""Beyond one machine: snapshots on object storage, shards behind a router, builds and deployments on Ray."""
