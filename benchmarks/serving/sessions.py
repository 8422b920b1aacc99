"""A checkpoint's int8 graph in plain sessions of onnxruntime, as whoever has only the graph would run it."""

from __future__ import annotations

import onnxruntime

from tercet.models.checkpoint import resolve_checkpoint
from tercet.models.cores import usable_cores
from tercet.models.graphs.record import choose_graph, read_export, verify_graph


def bare_sessions(checkpoint: str) -> dict[int, onnxruntime.InferenceSession]:
    """By number of threads: with one, and with one a core."""
    folder = resolve_checkpoint(checkpoint, None)
    path = verify_graph(folder, choose_graph(read_export(folder), None, "cpu")[1])
    sessions = {}
    for threads in sorted({1, usable_cores()}):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        providers = ["CPUExecutionProvider"]
        sessions[threads] = onnxruntime.InferenceSession(str(path), options, providers)
    return sessions
