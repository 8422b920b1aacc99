"""One server in front of shards: what it reads and writes is divided over them."""
