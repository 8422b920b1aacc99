"""How a source is read: the flags that say so, and what is shown of it."""
