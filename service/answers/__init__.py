"""Large answers, written piece by piece."""
