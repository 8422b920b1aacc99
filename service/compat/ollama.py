"""Ollama's APIs that embed. https://docs.ollama.com/api"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from tercet.service.compat.apis import OLLAMA, EmbedApi
from tercet.service.compat.fields import (
    DIMENSIONS,
    MODEL,
    NAME,
    TEA,
    TOKENS,
    VECTOR,
    cutting,
    texts,
)
from tercet.service.compat.request import TextOrTexts
from tercet.service.compat.shapes import Fixed, Slot, answer, request
from tercet.service.compat.vectors import only_json

# Ollama's clients add `:latest` to a name.
OLLAMA_MODEL = replace(MODEL, read=lambda name, _: name and name.removesuffix(":latest"))

OLLAMA_EMBED = EmbedApi(
    service=OLLAMA,
    name="ollama_embed",
    path="/api/embed",
    about="Dense vectors in the shape of Ollama's API.",
    request=request(
        "OllamaEmbedRequest",
        "Texts to embed, as Ollama's clients send them.",
        {"model": "tercet", "input": [TEA]},
        model=OLLAMA_MODEL,
        input=texts(TextOrTexts, "One text or several."),
        truncate=cutting("Cut longer texts; otherwise they are errors.", True),
        dimensions=DIMENSIONS,
    ),
    answer=answer(
        "OllamaEmbedResponse",
        "Dense vectors in the order of the texts; durations in nanoseconds.",
        model=NAME,
        embeddings=[VECTOR],
        total_duration=Slot("nanoseconds", int),
        load_duration=Fixed(int, 0),
        prompt_eval_count=replace(TOKENS, type=Annotated[int, Field(description="Tokens encoded.")]),
    ),
)
OLLAMA_EMBEDDINGS = EmbedApi(
    service=OLLAMA,
    name="ollama_embeddings",
    path="/api/embeddings",
    about="The dense vector of one text in the shape of Ollama's former route.",
    request=request(
        "OllamaEmbeddingsRequest",
        "One text to embed, as older clients of Ollama send it.",
        {"model": "tercet", "prompt": TEA},
        model=OLLAMA_MODEL,
        prompt=texts(str, "The text.", lambda text, _: [text] if text else []),
    ),
    answer=answer(
        "OllamaEmbeddingsResponse",
        "The dense vector of the text; nothing for an empty one.",
        embedding=VECTOR,
    ),
    together=only_json,
)
