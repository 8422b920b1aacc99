"""Parses HTML and PDF files: `parse_files MEMORY_BYTES SECONDS LIMIT_BYTES`.

A line of standard input is a JSON object `{"path", "ending", "encoding"}`, and one of standard output what
was in that file, as `ParsedText` has it, or `{"error"}`. Whatever a file holds, the process takes no more
than MEMORY_BYTES, and the operating system ends it where one file takes longer than SECONDS.
"""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path
from typing import Any

import orjson

from tercet.index.wording import reason_of
from tercet.ingest.texts.parsed import UnreadableFileError


def main() -> None:
    """Reads the command line and files' paths, and prints to standard output."""
    memory_bytes, seconds, limit_bytes = map(int, sys.argv[1:4])
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        signal.alarm(seconds)  # unhandled, so that it ends compiled code, too
        request = orjson.loads(line)
        answer = orjson.dumps(
            _answer(Path(request["path"]), request["ending"], request["encoding"], limit_bytes)
        )
        signal.alarm(0)
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


def _answer(path: Path, ending: str, encoding: str | None, limit_bytes: int) -> dict[str, Any]:
    too_large = f"longer than {limit_bytes} bytes, the limit for one document"
    try:
        if ending == ".pdf":
            from tercet.ingest.texts.pdf import parse_pdf

            parsed = parse_pdf(path, limit_bytes)
        else:
            from tercet.ingest.texts.html import parse_html

            parsed = parse_html(path.read_bytes(), encoding)
        if len(parsed.text.encode("utf-8", "surrogatepass")) > limit_bytes:
            return {"error": too_large}
        return _valid(parsed.to_json())
    except UnreadableFileError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"cannot be read ({reason_of(error)})"}
    except MemoryError:
        resource_bytes = resource.getrlimit(resource.RLIMIT_DATA)[0]
        return {"error": f"it takes more than {resource_bytes >> 20} MiB of memory"}


def _valid(record: dict[str, Any]) -> dict[str, Any]:
    """With half characters replaced, which JSON cannot hold."""
    text, title = (
        value and value.encode("utf-8", "replace").decode() for value in (record["text"], record["title"])
    )
    return {**record, "text": text, "title": title}


if __name__ == "__main__":
    main()
