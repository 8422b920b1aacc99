"""What a folder says of its checkpoint: as other libraries write it, and the settings of each family."""
