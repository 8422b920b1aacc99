"""Exported graphs: their record beside a checkpoint, their files, and runs of them by onnxruntime."""
