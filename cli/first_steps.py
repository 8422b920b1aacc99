"""What `tercet` alone says: what to do first, by what there is already."""

from __future__ import annotations

from rich.text import Text

from tercet.cli import options
from tercet.cli.output import console

FIRST = [
    ("tercet demo", "index a small corpus in five languages, answer three queries, serve it"),
    (
        "tercet collection build SOURCE --collection NAME",
        "index documents of your own: a folder of Markdown, HTML and PDF, CSV, JSONL, Parquet",
    ),
]
SEARCH = ('tercet search NAME "what the query says"', "search; without NAME it lists the collections")
ALWAYS = [
    ("tercet doctor", "see whether all is in order here, and what to do where it is not"),
    ("tercet --help", "every command; each has --help of its own"),
]


def print_first_steps() -> None:
    """Prints what to do first, or next where there are collections."""
    from tercet.index.collection import list_collections
    from tercet.service.http.listening import url_of

    settings = options.settings_from()
    names = list_collections(options.collections_root(settings))
    out = console()
    out.print("Tercet: hybrid retrieval, with three scores for every hit and their exact sum.\n")
    if names:
        out.print(Text(f"Collections in {settings.data}: {', '.join(names)}\n"), soft_wrap=True)
    url = url_of(settings.host, settings.port)
    following = [SEARCH, ("tercet serve", f"serve all of them over HTTP, with a page at {url}")]
    steps = [*following, *FIRST[1:], *ALWAYS] if names else [*FIRST, *following, *ALWAYS]
    width = max(len(command) for command, _ in steps)
    for command, what in steps:
        out.print(Text.assemble("  ", (command.ljust(width), "bold"), "  ", (what, "dim")), soft_wrap=True)
