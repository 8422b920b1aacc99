"""Keys are no flags: whoever can list a machine's processes would read them."""

from __future__ import annotations

from collections.abc import Sequence

from tercet.service.exceptions import SettingsError
from tercet.service.keys.keys import KEY_SETTINGS


def refuse_key_flags(arguments: Sequence[str]) -> None:
    """Raises SettingsError, without the key, where a command line gives one."""
    for argument in arguments:
        if argument == "--":
            return
        flag = argument.partition("=")[0]
        for name in KEY_SETTINGS:
            if flag == f"--{name.replace('_', '-')}":
                variable = f"TERCET_{name.upper()}"
                raise SettingsError(
                    f"{flag} is no flag: every user of this machine can read command lines. Put the key into "
                    f"a file and name that in {variable}_FILE, or set {variable}; and replace it."
                )
