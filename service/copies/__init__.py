"""Collections elsewhere: backups, and what a cluster brings here, publishes from here or moves."""
