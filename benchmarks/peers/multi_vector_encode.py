"""sentence-transformers' MultiVectorEncoder by OpenVINO, its fastest backend on a CPU, for encode.py: in 8
bits, as its own function quantizes it, or in float32.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from sentence_transformers import MultiVectorEncoder
from sentence_transformers.backend import export_static_quantized_openvino_model
from timed import Asked, Run, main

CALIBRATION = 64
BATCH = 32


def prepare(asked: Asked, options: argparse.Namespace) -> Run:
    """All texts as documents, in its batches."""
    model = MultiVectorEncoder(str(asked.checkpoint), backend="openvino", device="cpu")
    if options.precision == "int8":
        model = quantized(model, options.texts)
    model.max_seq_length = asked.max_length
    return lambda texts: model.encode_document(texts, batch_size=BATCH)


def quantized(model: MultiVectorEncoder, texts: Path) -> MultiVectorEncoder:
    """The same in 8 bits, calibrated by the first texts."""
    with tempfile.TemporaryDirectory() as folder:
        saved, sample = Path(folder) / "model", Path(folder) / "sample"
        model.save_pretrained(str(saved))
        sample.mkdir()
        with texts.open(encoding="utf-8") as lines:
            some = [json.loads(line)["text"] for line, _ in zip(lines, range(CALIBRATION), strict=False)]
        rows = "".join(json.dumps({"text": text}) + "\n" for text in some)
        (sample / "train.jsonl").write_text(rows, encoding="utf-8")
        export_static_quantized_openvino_model(
            model,
            None,
            str(saved),
            dataset_name=str(sample),
            dataset_config_name="default",
            dataset_split="train",
            column_name="text",
        )
        file = "openvino_model_qint8_quantized.xml"
        return MultiVectorEncoder(str(saved), backend="openvino", model_kwargs={"file_name": file})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=("int8", "float32"), default="int8")
    main(prepare, parser)
