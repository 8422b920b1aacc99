"""The ledger: accepted operations, forced to the disk before they are acknowledged."""
