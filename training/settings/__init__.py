"""The settings of a run: tables, their limits, and how they are read."""
