"""`tercet search`: the page of results, and the same as JSON."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from tercet.cli.output import one_line, print_formula, print_hits
from tercet.cli.search import parse_weights
from tercet.index.candidates import Document, Hit, Scores, Weights, Window
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.service.schemas.search_answers import SearchResponse
from tercet.service.search.highlights import HitHighlights
from tests.tiny.cross_encoders import write_reranker

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.usefixtures("built")
def test_table(tercet: Run) -> None:
    done = tercet("search", "small", "how is tea made?", "--top-k", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["#", "score", "dense", "sparse", "colbert", "document"]
    first = lines[1].split()
    assert first[0] == "1"
    score, *parts = map(float, first[1:5])
    assert score == pytest.approx(sum(parts), abs=0.002)
    assert first[5:] == ["tea", "Green", "tea"]
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.usefixtures("built")
def test_json_filter_and_weights(tercet: Run) -> None:
    done = tercet(
        *("search", "small", "how is tea made?", "--json", "--weights", "1,0,0"),
        *("--filter", '{"lt": {"year": 1950}}'),
    )
    answer = json.loads(done.stdout)
    assert {hit["id"] for hit in answer["hits"]} == {"rail", "bees"}
    for hit in answer["hits"]:
        assert hit["score"] == pytest.approx(hit["scores"]["dense"], abs=1e-6)
    assert answer["snapshot"] == "000001"
    assert SearchResponse.model_validate(answer).query.tokens > 0  # the shape of `POST /search`
    assert tercet("search", "small", "tea", "--filter", '{"eq": {"size": 1}}').returncode == 1


def test_a_server_gives_what_this_process_gives(tercet: Run, server: str) -> None:
    there = ["--url", server]
    keys = {"TERCET_READ_KEYS": "none", "TERCET_API_KEYS": "secret"}
    assert tercet("search", "small", "tea", *there, **keys).returncode == 1  # the key for reading goes first
    keys = {"TERCET_API_KEYS": "secret"}
    boosted = '{"filter": {"lt": {"year": 1950}}, "add": 0.5}'
    for flags in (
        ["how is tea made?", "--offset", "1", "--min-score", "0.1", "--highlight"],
        ["tea", "--weights", "1,0.3,1", "--filter", '{"gt": {"year": 1900}}', "-k", "2"],
        ["tea", "--boost", boosted, "--fusion", "rrf"],
        ["--like", "tea"],
        ["--like", "tea", "--like", "bees", "--unlike", "rail"],
        ["word " * 600],
    ):
        here = tercet("search", "small", *flags)
        assert here.returncode == 0, here.stderr
        asked = tercet("search", "small", *flags, *there, **keys)
        assert (asked.stdout, asked.stderr) == (here.stdout, here.stderr)
        ours = json.loads(tercet("search", "small", *flags, "--json").stdout)
        theirs = json.loads(tercet("search", "small", *flags, "--json", *there, **keys).stdout)
        assert {**ours, "took_ms": 0} == {**theirs, "took_ms": 0}
    for flags in ([], ["--json"]):
        assert tercet("search", *flags).stdout == tercet("search", *flags, *there, **keys).stdout != ""
    wrong = tercet("search", "small", "tea", "--group-by", "size", *there, **keys)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)


def test_what_only_the_ledger_holds_is_found(tercet: Run, built: Path) -> None:
    with LiveCollection(Collection.open(built / "collections", "small")) as live:
        live.delete(["bees"])
    answer = json.loads(tercet("search", "small", "bees", "--json").stdout)
    assert sorted(hit["id"] for hit in answer["hits"]) == ["korea", "rail", "tea"]


@pytest.mark.usefixtures("built")
def test_pages_and_documents_like_another(tercet: Run) -> None:
    whole = json.loads(tercet("search", "small", "how is tea made?", "--json").stdout)["hits"]
    page = tercet(
        "search", "small", "how is tea made?", "--offset", "1", "--min-score", str(whole[2]["score"])
    )
    assert [line.split()[:2] for line in page.stdout.splitlines() if line.split()[0] in "1234"] == [
        ["2", f"{whole[1]['score']:.3f}"],
        ["3", f"{whole[2]['score']:.3f}"],
    ]
    ranks = json.loads(tercet("search", "small", "tea", "--fusion", "rrf", "--json").stdout)["hits"]
    assert ranks[0]["score"] == pytest.approx(3 / 61)
    like = json.loads(tercet("search", "small", "--like", "tea", "--json").stdout)["hits"]
    assert sorted(hit["id"] for hit in like) == ["bees", "korea", "rail"]
    several = ("--like", "tea", "--like", "bees", "--unlike", "rail", "--json")
    assert [hit["id"] for hit in json.loads(tercet("search", "small", *several).stdout)["hits"]] == ["korea"]
    for wrong, message in (
        (("x", "--like", "tea"), "leave one out"),
        ((), "give --like ID"),
        (("--unlike", "tea"), "it goes with --like ID"),
        (("--like", "tea", "--unlike", "coffee"), "has no document 'coffee'"),
        (("x", "--facet", "year"), "'year' is integer"),
        (("x", "--facet", "year:many"), "no FIELD:N"),
        (("x", "--group-by", "size"), "'size' is not declared"),
        (("x", "--fusion", "max"), "'max' is neither sum nor rrf"),
    ):
        done = tercet("search", "small", *wrong)
        assert done.returncode != 0
        assert message in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.usefixtures("built")
def test_boosts_are_a_column_and_part_of_the_score(tercet: Run) -> None:
    early = '{"filter": {"lt": {"year": 1950}}, "add": 2}'
    late = '{"field": "year", "decay": "linear", "origin": 2000, "scale": 100, "add": 0.5}'
    asked = ("search", "small", "how is tea made?", "--boost", early, "--boost", late)
    lines = tercet(*asked).stdout.splitlines()
    assert lines[0].split() == ["#", "score", "dense", "sparse", "colbert", "boost", "document"]
    score, *parts = map(float, lines[1].split()[1:6])
    assert score == pytest.approx(sum(parts), abs=0.003)
    plain = json.loads(tercet("search", "small", "how is tea made?", "--json").stdout)["hits"]
    hits = json.loads(tercet(*asked, "--json").stdout)["hits"]
    years = {hit["id"]: hit["metadata"].get("year") for hit in plain}
    for hit in hits:
        (former,) = (each["score"] for each in plain if each["id"] == hit["id"])
        assert hit["score"] == pytest.approx(former + hit["scores"]["boost"], abs=1e-9)
        assert (hit["scores"]["boost"] > 1.9) == (years[hit["id"]] is not None and years[hit["id"]] < 1950)
    for wrong, message in (("{", "is not JSON"), ('{"filter": {"lt": {"year": 1950}}}', "add is missing")):
        done = tercet("search", "small", "x", "--boost", wrong)
        assert done.returncode != 0
        assert message in " ".join(done.stderr.replace("│", " ").split())


def test_a_re_ranker_orders_and_is_a_column(tercet: Run, built: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="re-rankers run in torch: install tercet[torch]")
    write_reranker(built / "rerankers" / "judge", positions=128)
    asked = ("search", "small", "how is tea made?", "--reranker", "judge")
    hits = json.loads(tercet(*asked, "--json").stdout)["hits"]
    logits = [hit["scores"]["reranker"] for hit in hits]
    assert logits == sorted(logits, reverse=True)
    assert len(set(logits)) == 4
    lines = tercet(*asked).stdout.splitlines()
    assert lines[0].split() == ["#", "score", "dense", "sparse", "colbert", "reranker", "document"]
    assert float(lines[1].split()[5]) == pytest.approx(logits[0], abs=0.001)
    refused = tercet(*asked, "--rerankers", str(tmp_path / "elsewhere"))
    assert (refused.returncode, "the folder of re-rankers has none" in refused.stderr) == (1, True)


@pytest.mark.usefixtures("built")
def test_words_of_the_query_are_marked(tercet: Run) -> None:
    done = tercet("search", "small", "tea", "--highlight", "--json")
    hits = {hit["id"]: hit for hit in json.loads(done.stdout)["hits"]}
    tea = hits["tea"]
    assert {tea["text"][each["start"] : each["end"]].lower() for each in tea["highlights"]} == {"tea"}
    assert [tea["title"][each["start"] : each["end"]] for each in tea["title_highlights"]] == ["tea"]
    assert tercet("search", "small", "tea", "--highlight").returncode == 0


def test_marks_lie_where_they_lie_in_the_text() -> None:
    text = "Before.\n\n  Hot\t tea and  green tea " + "x " * 200
    marks = HitHighlights([{"start": 16, "end": 19}, {"start": 31, "end": 34}], [{"start": 0, "end": 3}])
    assert [text[each["start"] : each["end"]] for each in marks.text] == ["tea", "tea"]
    out = Console(width=80, record=True, force_terminal=True, color_system="standard")
    hit = Hit(Document("a", text, "Tea time"), 1.5, Scores(0.5, 0.25, 0.75), Window(1, 9, 40))
    print_hits([hit], out, highlights=[marks])
    lines = out.export_text(styles=True).splitlines()
    assert "\x1b[1;4;32mTea\x1b[0m\x1b[1;32m time" in lines[1]
    assert "…Hot \x1b[4mtea\x1b[0m and green \x1b[4mtea\x1b[0m x x" in lines[2]


@pytest.mark.usefixtures("built")
def test_facets_are_shown_below_the_hits(tercet: Run, tmp_path: Path) -> None:
    lines = [
        {"id": str(place), "text": "tea", "metadata": {"lang": "en" if place else "ko"}} for place in range(4)
    ]
    (tmp_path / "more.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = tercet("collection", "build", "more.jsonl", "--collection", "more", "--field", "lang:keyword")
    assert made.returncode == 0, made.stderr
    done = tercet("search", "more", "tea", "--facet", "lang:1", "--group-by", "lang")
    assert done.stdout.splitlines()[-1] == "lang  en 3 (2 different, 0 without)"
    assert sum(line.split()[0] in ("1", "2", "3") for line in done.stdout.splitlines() if line.split()) == 2


def test_wide_characters_and_control_characters_keep_the_page_in_shape() -> None:
    hits = [
        Hit(Document("韓国", "발효된 배추 " * 30, "김치\x1b[31m와\n\t장"), 1.5, Scores(0.5, 0.25, 0.75)),
        Hit(Document("x" * 70, "word", "[bold]no markup[/bold]"), -1.0, Scores(-1, 0, None)),
    ]
    out = Console(width=80, record=True, force_terminal=False)
    print_hits(hits, out)
    lines = out.export_text().splitlines()
    assert max(map(cell_len, lines)) <= 80
    page = "\n".join(lines)
    assert "김치 [31m와 장" in page
    assert "[bold]no markup[/bold]" in page
    assert "–" in page
    assert one_line("a\r\nb\x07\u202ec") == "a b c"


def test_a_text_that_fits_two_lines_is_shown_whole() -> None:
    text = "抹茶は、日本の茶道で使われる粉末の緑茶です。"
    for score in (0.376, -0.376):
        out = Console(width=80, record=True, force_terminal=False)
        print_hits([Hit(Document("a4", text), score, Scores(0.139, score, 0.237))], out)
        assert "…" not in out.export_text()


def test_a_window_is_shown_instead_of_the_beginning() -> None:
    document = Document("book", "It begins here. And it ends there.")
    for window, shown in ((Window(1, 16, 34), "…And it ends there."), (Window(0, 0, 15), "It begins here.")):
        out = Console(width=80, record=True, force_terminal=False)
        print_hits([Hit(document, 1.5, Scores(0.5, 0.25, 0.75), window)], out)
        assert out.export_text().rstrip().endswith(shown)


@pytest.mark.parametrize(
    ("weights", "score", "shown"),
    [
        ({"dense": 1, "sparse": 1, "colbert": 1}, 1.5, ""),  # the columns add up
        ({"dense": 1, "sparse": 1, "colbert": 1, "bm25": 0}, 1.5, "score = dense + sparse + colbert"),
        ({"dense": 1, "sparse": 0.378, "colbert": 0}, 0.5945, "score = dense + 0.378 × sparse"),
        ({"dense": 1, "sparse": 0.378, "colbert": 0}, 0.016, ""),  # by ranks
    ],
)
def test_what_adds_up_to_a_score_is_said(weights: dict[str, float], score: float, shown: str) -> None:
    out = Console(width=80, record=True, force_terminal=False)
    print_formula([Hit(Document("a", "tea"), score, Scores(0.5, 0.25, 0.75))], weights, out)
    assert out.export_text().strip() == shown


def test_weights_by_name_and_number() -> None:
    assert parse_weights("miracl") == Weights(1, 0.3, 1)
    assert parse_weights("0.5, 0, 2") == Weights(0.5, 0, 2)


def test_without_a_name_the_collections_are_listed(tercet: Run, built: Path) -> None:
    done = tercet("search")
    assert done.returncode == 0
    assert done.stdout.split() == ["small", "4", "documents,", str(checkpoint_of(built))]
    listed = json.loads(tercet("search", "--json").stdout)
    assert listed == {
        "collections": [{"name": "small", "documents": 4, "encoder": str(checkpoint_of(built))}]
    }


def checkpoint_of(data: Path) -> str:
    settings = json.loads((data / "collections" / "small" / "collection.json").read_text("utf-8"))
    return str(settings["encoder"])


def test_without_collections_it_says_how_to_make_one(tercet: Run) -> None:
    done = tercet("search")
    assert done.returncode == 0
    assert "There are no collections in data. Make one: tercet demo" in done.stdout
