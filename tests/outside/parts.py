"""What `make outside` tries: packages for frameworks, clients of other services, and examples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "clients"
SERVICES = Path(__file__).resolve().parent / "services"


@dataclass(frozen=True, slots=True)
class Part:
    """folder: has the tests; packages: folders whose wheels are installed, the last of them with its extra
    `test` where tested; requirements: files of more; shown: whose versions the summary has; typed: mypy
    checks it.
    """

    name: str
    folder: Path
    packages: tuple[Path, ...]
    shown: tuple[str, ...]
    requirements: tuple[Path, ...] = ()
    tested: bool = True
    typed: bool = True

    @property
    def constraints(self) -> Path:
        """Exact versions of all that the packages bring."""
        return self.folder / "constraints.txt"


def _package(name: str, *shown: str) -> Part:
    return Part(name, CLIENTS / name, (CLIENTS / "python", CLIENTS / name), shown)


PARTS = (
    _package("langchain", "langchain-core", "langchain-tests"),
    _package(
        "llama-index",
        "llama-index-core",
        "llama-index-embeddings-text-embeddings-inference",
        "llama-index-postprocessor-tei-rerank",
    ),
    _package("haystack", "haystack-ai"),
    _package("mteb", "mteb"),
    Part(
        "services",
        SERVICES,
        (CLIENTS / "python",),
        ("openai", "ollama", "huggingface_hub", "cohere"),
        requirements=(SERVICES / "requirements.txt",),
        tested=False,
        typed=False,
    ),
    Part(
        "examples",
        ROOT / "examples",
        (CLIENTS / "python", CLIENTS / "langchain"),
        ("langchain-openai", "nbclient", "matplotlib"),
        requirements=(ROOT / "examples" / "requirements.txt",),
        tested=False,
        typed=False,
    ),
)
