"""A multilingual vocabulary, table and encoder, made from an English one."""
