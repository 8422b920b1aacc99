"""From texts to representations for many callers at once."""
