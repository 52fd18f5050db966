"""Every error a user can meet. The command line prints one as one line and exits with code 2."""


class RegardError(Exception):
    """Something the user can mend; the message says what is wrong, where, and what to do."""


class ConfigError(RegardError):
    """An option that does not exist or a value it does not take."""


class CorpusError(RegardError):
    """A corpus that cannot be read: the message names the file and, where known, the line."""


class UnequalError(CorpusError):
    """Two sides of a corpus with different numbers of lines."""

    def __init__(self, message: str, num_source: int, num_target: int) -> None:
        super().__init__(message)
        self.num_source = num_source
        self.num_target = num_target

    def __reduce__(self) -> tuple[type["UnequalError"], tuple[str, int, int]]:
        return type(self), (str(self), self.num_source, self.num_target)


class TokenizerError(RegardError):
    """A tokenizer that cannot be learnt from this text or read from these bytes."""


class ModelFileError(RegardError):
    """A model file that cannot be read, is damaged, or holds what its own configuration does not fit."""


class SourceError(RegardError):
    """A text that cannot be translated."""


class DocumentError(RegardError):
    """A document that cannot be translated in place."""


class WorkerError(RegardError):
    """A worker process that ended before its work was done."""


class OutputError(RegardError):
    """A file or folder that cannot be written."""


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra; the package is installed from a checkout."""
    return f"pip install '.[{extra}]' in the checkout of regard"


class MissingExtraError(RegardError):
    """An optional part that is not installed; the message gives the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra [{extra}]; install it with: {how_to_install(extra)}")
        self.what = what
        self.extra = extra

    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str]]:
        return type(self), (self.what, self.extra)


class CheckpointError(RegardError):
    """A training state that cannot be read or continued."""


class TrainingError(RegardError):
    """A training that cannot go on; the message names the cause and the one change to make."""


class RunError(RegardError):
    """A folder that is no training run, or one with a damaged file; the message names file and line."""


class TraceError(RegardError):
    """A trace that cannot be read, or in which something does not hold."""


class ForeignModelError(RegardError):
    """A model of another program that cannot be imported; the message names the file and the reason."""
