"""Work in pieces: each is done by whichever process takes it, and leaves what it made on an object store."""
