"""That a server's warm-up loads every compiled kernel that its first search needs."""

import subprocess
import sys
from pathlib import Path

WARM_UP_AND_SEARCH = """
import sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from index.collection import Collection
from models.encoder import encode
from service.runtime import WARM_UP_TEXT, write_and_search
from tests.conftest import TinyEncoder, build_demo

def loaded():
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("index.")]
    functions = {f for names in modules for f in names.values() if isinstance(f, Dispatcher)}
    return {(f.__name__, signature) for f in functions for signature in f.signatures}

encoder = TinyEncoder()
build_demo(Path(sys.argv[1]), encoder)
collection = Collection.open(Path(sys.argv[1]) / "collections", "demo")
words = encode(encoder, ["hot tea"], "query")
unknown = encode(encoder, [WARM_UP_TEXT])
write_and_search(encoder.info, unknown)
before = loaded()
collection.snapshot().search(words, top_k=3)
print(len(unknown.sparse.token_ids), len(words.sparse.token_ids), len(before))
print(*sorted(name for name, _ in loaded() - before))
"""


def test_the_warm_up_of_a_text_without_known_words_loads_the_kernels_of_a_search(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WARM_UP_AND_SEARCH, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    counts, later = done.stdout.splitlines()
    unknown, words, kernels = map(int, counts.split())
    assert (unknown, words) == (0, 2)
    assert kernels > 10
    assert not later
