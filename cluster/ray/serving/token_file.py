"""The file of Ray's token: for its owner alone, made where there is none."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from tercet.cluster.ray.errors import TokenFileError
from tercet.index.wording import reason_of

MODE = 0o600
TOKEN_BYTES = 32


def hold_token(file: Path) -> None:
    """Has this process and its children use the token of a file, and makes a new one where it is missing.

    A token in the environment stays the one. Raises TokenFileError.
    """
    os.environ["RAY_AUTH_MODE"] = "token"
    if os.environ.get("RAY_AUTH_TOKEN"):
        return
    file = file.expanduser().absolute()
    try:
        _made(file)
        status = file.stat()
        if stat.S_IMODE(status.st_mode) & ~MODE:
            raise TokenFileError(
                f"token file {file} has mode {stat.S_IMODE(status.st_mode):04o}, so that others may read it: "
                f"make a new token, as this one may be known (rm {file}), or chmod 600 it"
            )
        if not file.read_text("utf-8").strip():
            raise TokenFileError(f"token file {file} is empty; remove it, and a new token is made")
    except (OSError, UnicodeDecodeError) as error:
        raise TokenFileError(f"token file {file} cannot be used: {reason_of(error)}") from error
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(file)


def _made(file: Path) -> None:
    """The file as it is, or a new one; never for a moment readable by others."""
    if file.exists():
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    except FileExistsError:  # another made it meanwhile
        return
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(secrets.token_hex(TOKEN_BYTES))
