"""`tercet demo`: builds the bundled corpus, answers a few queries, then serves it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli import options
from tercet.cli.output import console, error_console, print_formula, print_hits

if TYPE_CHECKING:
    from tercet.models.encoder import Encoder
    from tercet.service.settings.settings import Settings

CORPUS = Path(__file__).parent.parent / "demo"
COLLECTION = "demo"
LANGUAGES = ("en", "ko", "ja")  # of the queries, one of each
HITS = 3


def demo(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. [TERCET_HOST]", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port to listen on. [TERCET_PORT, default 8080]", show_default=False
        ),
    ] = None,
    serve: Annotated[bool, typer.Option(help="Serve after the queries are answered.")] = True,
    data: options.Data = None,
    checkpoint: options.Checkpoint = None,
    engine: options.Engine = None,
) -> None:
    """Index the bundled corpus, answer three queries, and serve."""
    from tercet.service.encoding.service import local_encoder

    settings = options.settings_from(host=host, port=port, data=data, checkpoint=checkpoint, engine=engine)
    if serve:
        from tercet.service.http.listening import listening_socket

        listening_socket(settings.host, settings.port).close()  # a taken port should fail before the work
    encoder = local_encoder(settings)
    _build(settings, encoder)
    _answer(settings, encoder)
    if serve:
        from tercet.service.app import create_app
        from tercet.service.serving import run_server

        del encoder  # the service loads its own
        _announce(settings)
        run_server(create_app(settings), settings)


def corpus_texts() -> list[str]:
    """Titles and texts of the bundled corpus, in five languages."""
    lines = (CORPUS / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [f"{record['title']}\n{record['text']}" for record in map(json.loads, lines)]


def _build(settings: Settings, encoder: Encoder) -> None:
    """Builds the collection, unless the same corpus, encoder and kind of lexical weights did so before."""
    from tercet.cli.progress import build_progress
    from tercet.index.collection import delete_collection
    from tercet.index.errors import CollectionNotFoundError
    from tercet.index.files.directory import write_json_atomically
    from tercet.ingest.build import build_collection
    from tercet.ingest.document_encoders import LocalDocuments
    from tercet.service.collections.registry import CollectionRegistry

    corpus = CORPUS / "corpus.jsonl"
    root = options.collections_root(settings)
    # A copy below sources/ lets the same build be started over HTTP.
    source = settings.data / "sources" / "demo.jsonl"
    marker = settings.data / "demo.json"
    built = {
        "corpus": hashlib.sha256(corpus.read_bytes()).hexdigest(),
        "encoder": encoder.info.fingerprint,
        "lexical": encoder.info.lexical,
    }
    former = _read_marker(marker)
    remarks = error_console()
    try:
        present = CollectionRegistry(root).describe(COLLECTION)
    except CollectionNotFoundError:
        present = None
    suits = present is not None and (
        present.settings.fingerprint == built["encoder"] and present.settings.lexical == built["lexical"]
    )
    if former == built and present is not None and suits:
        remarks.print(f"The collection {COLLECTION!r} is up to date: {present.documents} documents.")
        return
    if present is not None and former is not None and not suits:
        delete_collection(root, COLLECTION)  # made by an earlier demo, with other settings
    source.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(corpus, source)
    with build_progress("auto") as report:
        done = build_collection(
            LocalDocuments(encoder),
            root,
            COLLECTION,
            source,
            fields={"lang": "keyword", "topic": "keyword"},
            progress=report,
        )
    write_json_atomically(marker, built)
    remarks.print(f"Indexed {done.documents} documents in {done.seconds:.1f} s.")


def _read_marker(marker: Path) -> dict[str, Any] | None:
    """What the last demo built, or None where no readable file says so."""
    from tercet.index.errors import DamagedIndexError
    from tercet.index.files.content import read_json_object

    try:
        return read_json_object(marker)
    except (FileNotFoundError, DamagedIndexError):
        return None


def _answer(settings: Settings, encoder: Encoder) -> None:
    from tercet.cli.stores.local_search import run_queries
    from tercet.service.search.answers import sides_record
    from tercet.service.search.query import SearchQuery, SearchScope

    lines = (CORPUS / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    by_language: dict[str, str] = {}
    for line in map(json.loads, lines):
        by_language.setdefault(line["language"], line["query"])
    texts = [by_language[language] for language in LANGUAGES]
    queries = [SearchQuery(text, top_k=HITS) for text in texts]
    # The first search of a process loads compiled code; its time would say nothing about the others.
    outcomes = run_queries(settings, encoder, SearchScope(COLLECTION), [queries[0], *queries])[1:]
    out = console()
    for text, outcome in zip(texts, outcomes, strict=True):
        out.print()
        out.print(f"[bold]{text}[/bold]  [dim]{outcome.seconds.total * 1000:.1f} ms[/dim]")
        print_hits(outcome.hits, out)
        print_formula(outcome.hits, sides_record(outcome.weights, bm25=outcome.bm25), out)


def _announce(settings: Settings) -> None:
    url = f"http://{settings.host}:{settings.port}"
    body = json.dumps(
        {"collection": COLLECTION, "query": "how do bees show each other the way to flowers?", "top_k": 3}
    )
    error_console().print(
        f"\nServing {settings.checkpoint} on {url} (interactive description: {url}/docs). Stop with Ctrl-C. "
        "Try:\n"
        f"curl -s {url}/search -H 'Content-Type: application/json' -d '{body}'\n",
        markup=False,
        soft_wrap=True,
    )
