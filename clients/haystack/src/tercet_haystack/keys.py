"""Keys of servers, which pipelines save by the names of environment variables alone."""

from __future__ import annotations

from haystack.utils import Secret

KEY_VARIABLE = "TERCET_CLIENT_KEY"


def default_key() -> Secret:
    """The key that TERCET_CLIENT_KEY has, if it is set."""
    return Secret.from_env_var(KEY_VARIABLE, strict=False)


def as_secret(key: Secret | str | None) -> Secret | None:
    """A string as a secret, which cannot be saved with a pipeline."""
    return Secret.from_token(key) if isinstance(key, str) else key


def value_of(key: Secret | None) -> str | None:
    """The key itself."""
    return None if key is None else key.resolve_value()
