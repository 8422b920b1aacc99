"""The tercet command: the one place that joins service and evaluation."""
