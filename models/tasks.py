"""Adapters that a checkpoint brings itself, one for each task, as jina-embeddings-v3-hf does.

Each lies in a folder of its task's name, as PEFT writes LoRA. Queries and documents go through one each:
`retrieval_query` and `retrieval_passage`, unless `tasks` of `tercet.json` names others.
https://huggingface.co/docs/transformers/model_doc/jina_embeddings_v3, https://arxiv.org/abs/2409.10173
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tercet.models.errors import CheckpointError
from tercet.models.formats.peft_config import CONFIG
from tercet.models.formats.sentence_transformers import PROMPTS_FILE, object_in
from tercet.models.representations import InputType

KEY = "tasks"
KINDS: tuple[InputType, ...] = ("query", "document")
# What retrieval takes.
USUAL = {"query": "retrieval_query", "document": "retrieval_passage"}


@dataclass(frozen=True, slots=True)
class Tasks:
    """The task of queries and that of documents, by the names of their folders."""

    query: str
    document: str

    def __post_init__(self) -> None:
        for kind in KINDS:
            if not isinstance(getattr(self, kind), str):
                raise CheckpointError(
                    f"{KEY}.{kind} is {getattr(self, kind)!r}; it must name a task's folder"
                )

    @property
    def is_one(self) -> bool:
        """Whether queries and documents have the same task."""
        return self.query == self.document

    @staticmethod
    def from_json(values: object) -> Tasks:
        """From a JSON object. Raises CheckpointError unless it names a task for each kind of text."""
        if not isinstance(values, Mapping) or set(values) != set(KINDS):
            raise CheckpointError(
                f"{KEY} is {values!r:.80}; it must be an object with a task for query and one for document, "
                "or null for none"
            )
        return Tasks(**values)

    def to_json(self) -> dict[str, str]:
        """As in `tercet.json`."""
        return asdict(self)


def tasks_in(folder: Path) -> list[str]:
    """The tasks for which a checkpoint has adapters, in order of name."""
    return sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))


def settings_of_tasks(folder: Path, own: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of `tercet.json` that follow from a checkpoint's adapters: its usual tasks, where it has these,
    and the prompts that sentence-transformers' file has for them. own: what `tercet.json` says itself.

    Raises CheckpointError for tasks that the folder does not have.
    """
    there = tasks_in(folder)
    chosen = own.get(KEY, USUAL if set(USUAL.values()) <= set(there) else None)
    if chosen is None:
        return {}
    tasks = Tasks.from_json(chosen)
    for kind in KINDS:
        if getattr(tasks, kind) not in there:
            raise CheckpointError(
                f"{folder}: {KEY} names {getattr(tasks, kind)!r:.80}, but there are adapters for {there}"
            )
    prompts = object_in(folder / PROMPTS_FILE).get("prompts")
    instructions = {f"{kind}_instruction": _prompt(prompts, getattr(tasks, kind)) for kind in KINDS}
    return {KEY: tasks.to_json(), **{name: prompt for name, prompt in instructions.items() if prompt}}


def _prompt(prompts: object, task: str) -> str | None:
    """The prompt of a task, whose name may have dots or hyphens in the place of underscores."""
    if not isinstance(prompts, Mapping):
        return None
    names = (task, task.replace("_", "."), task.replace("_", "-"))
    return next((prompts[name] for name in names if isinstance(prompts.get(name), str)), None)
