"""Errors that become answers."""


class ApiError(Exception):
    """An answer other than 200: its status, and one line that says what to do."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after
