"""`tercet search` without a name: the collections that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tercet.cli.output import console, counted, error_console, print_json, print_pairs

if TYPE_CHECKING:
    from tercet.cli.stores.opening import Store


def list_collections(store: Store, *, as_json: bool) -> None:
    """The collections that may be searched, with what each holds."""
    record = [
        {"name": collection["name"], "documents": collection["documents"], "encoder": collection["model"]}
        for collection in store.collections()
    ]
    if as_json:
        print_json({"collections": record})
    elif not record:
        console().print(
            f"There are no collections in {store.location}. Make one: tercet demo, or "
            "tercet index build SOURCE --collection NAME",
            soft_wrap=True,
        )
    else:
        shown = {row["name"]: f"{counted(row['documents'], 'document')}, {row['encoder']}" for row in record}
        print_pairs(shown, console())
        error_console().print('Search one: tercet search NAME "what the query says"')
