"""`tercet search` without a name: the collections that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tercet.cli import options
from tercet.cli.output import console, counted, error_console, print_json, print_pairs
from tercet.cli.remote import Remote

if TYPE_CHECKING:
    from tercet.service.settings.settings import Settings


def list_collections(settings: Settings, url: str | None, *, as_json: bool) -> None:
    """The collections that may be searched, with what each holds."""
    if url is None:
        found = _collections_here(settings)
    else:
        with Remote(url, settings, reads=True) as remote:
            found = remote.ask("GET", "/collections")["collections"]
    record = [
        {"name": each["name"], "documents": each["documents"], "encoder": each["model"]} for each in found
    ]
    if as_json:
        print_json({"collections": record})
    elif not record:
        console().print(
            f"There are no collections in {settings.data if url is None else url}. Make one: tercet demo, or "
            "tercet index build SOURCE --collection NAME",
            soft_wrap=True,
        )
    else:
        shown = {
            each["name"]: f"{counted(each['documents'], 'document')}, {each['encoder']}" for each in record
        }
        print_pairs(shown, console())
        error_console().print('Search one: tercet search NAME "what the query says"')


def _collections_here(settings: Settings) -> list[dict[str, Any]]:
    from tercet.index.collection import list_collections as names_of
    from tercet.index.inspection import inspect_collection

    root = options.collections_root(settings)
    found = [inspect_collection(root, name) for name in names_of(root)]
    return [
        {"name": each.settings.name, "documents": each.documents, "model": each.settings.encoder}
        for each in found
    ]
