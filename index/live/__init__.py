"""Live collections: writes that last before they are acknowledged, and that the next search sees."""
