"""`tercet doctor`: what is installed, what this machine can do, and whether all is in order to serve."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tercet.cli import options
from tercet.cli.doctor.findings import Finding, State
from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, one_line, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tercet.service.settings.settings import Settings

MARKS: dict[State, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "note": ("note", "cyan"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "bold red"),
}


@with_flag_groups
def doctor(
    *,
    encoding: options.EncoderFlags,
    encoder_url: Annotated[
        str | None,
        typer.Option(
            metavar="URLS", help="Encoder workers to ask. [TERCET_ENCODER_URLS]", show_default=False
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Look at packages, processor, encoder, data root and limits; say what to do about each finding.

    Exit code 1 where something would keep Tercet from working.
    """
    settings = encoding.settings(encoder_urls=encoder_url)
    findings: list[Finding] = []
    for finding in _examined(settings):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)


def _examined(settings: Settings) -> Iterator[Finding]:
    from tercet.cli.doctor import data, encoder, machine, server, software

    yield from software.findings()
    yield from machine.findings()
    fingerprint = yield from encoder.findings(settings)
    yield from data.findings(settings, fingerprint)
    yield from server.findings(settings)


def _print(finding: Finding) -> None:
    word, style = MARKS[finding.state]
    out = console()
    out.print(
        Text.assemble((word.ljust(8), style), (finding.topic.ljust(12), "dim"), one_line(finding.text)),
        soft_wrap=True,
    )
    if finding.remedy is not None:
        out.print(Text.assemble(" " * 20, "→ ", one_line(finding.remedy)), soft_wrap=True)
