"""The suites by name, apart from their readers, so that a command line loads none of these for its help."""

from __future__ import annotations

from typing import Literal

SuiteName = Literal["miracl", "mkqa", "mldr", "narrativeqa", "msmarco", "nq", "beir"]
