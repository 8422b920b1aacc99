"""That the warm-up loads every compiled loop that a process's first requests need."""

import subprocess
import sys
from pathlib import Path

WARM_UP_AND_USE = """
import sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from index.collection import Collection
from index.documents.filters import parse_filter
from index.live.collection import LiveCollection
from index.warm_up import warm_up
from models.encoder import encode
from tests.conftest import DOCUMENTS, TinyEncoder, build_demo

def loaded():
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("index.")]
    functions = {f for names in modules for f in names.values() if isinstance(f, Dispatcher)}
    return {(f.__name__, signature) for f in functions for signature in f.signatures}

warm_up()
before = loaded()
encoder = TinyEncoder()
build_demo(Path(sys.argv[1]), encoder, lexical="idf", bm25=True)
collection = Collection.open(Path(sys.argv[1]) / "collections", "demo")
query = encode(encoder, ["hot tea"], "query")
collection.snapshot().search(query, text="hot tea", top_k=3)
collection.snapshot().search(query, filter=parse_filter({"eq": {"kind": "drink"}}))
with LiveCollection(collection) as live:
    live.put(DOCUMENTS[:2], encode(encoder, [each.encoded_text for each in DOCUMENTS[:2]]))
    live.snapshot().search(query, top_k=3)
    live.flush()
print(len(before))
print(*sorted(name for name, _ in loaded() - before))
"""


def test_what_a_process_does_first_needs_no_more_loops(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WARM_UP_AND_USE, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    loops, later = done.stdout.splitlines()
    assert int(loops) > 10
    assert not later
