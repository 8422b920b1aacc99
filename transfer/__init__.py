"""Documents with all their representations, out of a collection into other systems, and back."""
