"""Routes of other services, so that their clients can be pointed here as they are."""
