"""The JSON files that say what a collection is and holds."""
