"""Arguments are text: what is no UTF-8 could be sent, printed or stored only as other text."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tercet.service.exceptions import SettingsError

SHOWN_BYTES = 80


def require_text(arguments: Sequence[str]) -> None:
    """Raises SettingsError for an argument of bytes that the locale's encoding does not have."""
    for number, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = repr(os.fsencode(argument)[:SHOWN_BYTES])[1:]
            raise SettingsError(
                f"argument {number}, {shown}, is no UTF-8 text: write it as UTF-8, and rename a file that is "
                "called so"
            ) from None
