"""The tercet command: the one place that joins service, evaluation and training."""
