"""Settings as flags, environment and file give them; what is wrong there is told in one line."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from tercet.service.exceptions import SettingsError
from tercet.service.invalid_values import message_of
from tercet.service.keys.keys import KEY_SETTINGS
from tercet.service.settings.roles import Server
from tercet.service.settings.settings import CONFIG_FILE, PREFIX, ROLES, Settings

SHORT_NAME = 6  # letters of a setting such as "port"


def load_settings(
    overrides: Mapping[str, Any] | None = None, servers: frozenset[Server] | None = None
) -> Settings:
    """Settings with these overrides (flags; None means not given).

    servers: what the process may become. Settings that concern none of these keep their defaults, whatever
    environment and file say, as these are often shared with other servers. By default all count.

    Raises SettingsError with one line that names the setting, and never its value where it is secret.
    """
    _refuse_misspelt_variables()
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    others = {
        name: field.default
        for name, field in Settings.model_fields.items()
        if servers is not None and not ROLES[name].servers & servers
    }
    try:
        settings = Settings(**(others | given))
    except ValidationError as error:
        raise SettingsError("; ".join(_one_line(dict(detail), given) for detail in error.errors())) from None
    except ValueError as error:  # a tercet.toml that is not TOML
        raise SettingsError(f"{CONFIG_FILE}: {error}") from None
    settings._flags = frozenset(given)
    return settings


def _refuse_misspelt_variables() -> None:
    """Other programs may have variables with our prefix, but one that is nearly a setting's was meant as it.

    TERCET_API_KEY instead of TERCET_API_KEYS would leave a server open.
    """
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            given = name.removeprefix(PREFIX).lower()
            likeness = 0.9 if len(given) > SHORT_NAME else 0.75  # one wrong letter changes a short name more
            near = difflib.get_close_matches(given, Settings.model_fields, 1, likeness)
            if near:
                raise SettingsError(
                    f"variable {name} is no setting; did you mean {PREFIX}{near[0].upper()}? Unset it."
                )


def _one_line(detail: dict[str, Any], flags: Mapping[str, Any]) -> str:
    name = str(detail["loc"][0]) if detail["loc"] else "settings"
    origin = CONFIG_FILE if name not in flags and f"{PREFIX}{name.upper()}" not in os.environ else None
    where = f"{origin}: " if origin else ""
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, Settings.model_fields, 1)
        return f"{where}unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    setting = f"{where}setting {name} ({PREFIX}{name.upper()})"
    if name in KEY_SETTINGS and detail["type"] != "value_error":
        return f"{setting} is no text; write keys as strings"
    return message_of(setting, [detail])
