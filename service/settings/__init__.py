"""Settings: what each is, and how flags, environment and files give them."""
