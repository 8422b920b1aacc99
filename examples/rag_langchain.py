"""Answers questions from a collection with LangChain: retrieve, re-rank, prompt, language model.

Run: pip install ./clients/python ./clients/langchain; make demo
     python examples/rag_langchain.py "why does dough rise?"
Without --model the prompt is printed and the best passage is the answer; only Tercet is asked. With it,
any OpenAI-compatible server answers (pip install langchain-openai; OPENAI_API_KEY has the key):
     --model gpt-5-mini, or --model llama3 --base-url http://localhost:11434/v1
"""

import argparse
import os

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_tercet import TercetRerank, TercetRetriever

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from the passages alone, and name those you use by their numbers, as [1]."),
        ("human", "{passages}\n\nQuestion: {question}"),
    ]
)


def numbered(documents: list[Document]) -> str:
    """The passages as the prompt shows them."""
    return "\n\n".join(
        f"[{number}] {document.metadata.get('title', '')}\n{document.page_content}"
        for number, document in enumerate(documents, 1)
    )


def stand_in(prompt: PromptValue) -> str:
    """What takes the place of a language model: shows the prompt, and answers with the first passage."""
    text = prompt.to_string()
    print(f"--- the prompt ---\n{text}\n--- the answer ---")
    return text.split("[1] ", 1)[1].split("\n\n", 1)[0] + " [1]"


def language_model(name: str | None, base_url: str | None) -> Runnable:
    """The model of this name, or what stands in for one."""
    if name is None:
        return RunnableLambda(stand_in)
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=name, base_url=base_url, temperature=0)


parser = argparse.ArgumentParser()
parser.add_argument("question")
parser.add_argument("--url", default="http://127.0.0.1:8080", help="of Tercet (key: TERCET_CLIENT_KEY)")
parser.add_argument("--collection", default="demo")
parser.add_argument("--model", help="of an OpenAI-compatible server")
parser.add_argument("--base-url", help="of that server, unless it is OpenAI's")
arguments = parser.parse_args()

place = {"url": arguments.url, "collection": arguments.collection, "key": os.environ.get("TERCET_CLIENT_KEY")}
found = TercetRetriever(**place, k=10).invoke(arguments.question)
best = TercetRerank(**place, top_n=3).compress_documents(found, arguments.question)
for number, document in enumerate(best, 1):
    print(f"[{number}] {document.id}  {document.metadata['tercet']['scores']}")

chain = PROMPT | language_model(arguments.model, arguments.base_url) | StrOutputParser()
print(chain.invoke({"passages": numbered(list(best)), "question": arguments.question}))
