"""What signals that ask the process to end raise."""


class EndedError(BaseException):
    """A signal that asks the process to end; raised so that nothing half-made is left."""

    def __init__(self, number: int) -> None:
        self.number = number
