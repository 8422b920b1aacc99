"""Token vectors by document."""
