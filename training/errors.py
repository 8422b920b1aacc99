"""Exceptions about training runs.

TrainingError
├── ConfigError         a setting is unknown, missing, of the wrong type or out of range
├── TrainingDataError   a line of a training file cannot be used; the message names file and line
├── BaseWeightsError    the base checkpoint is not installed or is not the expected one
├── RunStateError       the saved state of a run is damaged or of another run
├── LanguageModelError  the server of a language model refuses or does not answer
├── DivergedError       a loss or a gradient is no finite number any more
├── RunStoppedError     a signal asked the run to stop, and its state is saved
└── MissingExtraError   a package that training needs is not installed
"""


class TrainingError(Exception):
    """Any failure in training; its message names the value, the limit and the remedy."""


class ConfigError(TrainingError):
    """A setting of the run is unknown, missing, of the wrong type or out of range."""


class TrainingDataError(TrainingError):
    """A training file is missing, or a line of it cannot be used."""


class BaseWeightsError(TrainingError):
    """The base checkpoint is not installed, or its weights are not the expected ones."""


class RunStateError(TrainingError):
    """The saved state of a run is damaged, or belongs to a run with other settings."""


class LanguageModelError(TrainingError):
    """The server of a language model refuses or does not answer; what it has answered before is kept."""


class DivergedError(TrainingError):
    """A loss or a gradient is no finite number any more; the message names the learning rate to lower."""


class RunStoppedError(TrainingError):
    """A signal asked the run to stop; its state is saved, and the same command goes on from there."""


class MissingExtraError(TrainingError):
    """A package that training needs is not installed; the message names the command that installs it."""
