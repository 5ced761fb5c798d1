"""What can go wrong, as one small tree.

MqError
├── BadUsage bad_value (2)      NotFound not_found (4)      Empty empty (5)
├── Refused refused (6)         NameInUse name_in_use (6)   Active active (6)
├── BadData bad_data (65)       TooLarge too_large (65)     NoInput no_input (66)
├── Unreachable unreachable (69)  Loading loading (69)      ClusterDown (69)
├── AuthFailed auth (77)        Denied denied (77)          ReadOnly read_only (77)
├── WrongType wrong_type (1)    OutOfMemory out_of_memory (1)  LostLease (1)
├── Partial partial (3)         NotDurable (75)             TimedOut timeout (75)
├── UnknownOutcome unknown_outcome (75)                     OutputFailed output (74)
└── BadConfig config (78)       HandlerBroken handler (78)  Unsupported (78)

Each has a one-line message, facts, and where there is one a hint the user can
paste. Exit codes are those of the command-line contract.
"""

from typing import ClassVar

Fact = str | int | bool | None | list[str] | list[int] | list[list[int]]


class MqError(Exception):
    """A failure mqctl can explain: one line, its facts, and what to do next."""

    code: ClassVar[str] = "failed"
    exit: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, **facts: Fact) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts: dict[str, Fact] = {k: v for k, v in facts.items() if v is not None}


class BadUsage(MqError):
    """A value on the command line that cannot be meant."""

    code = "bad_value"
    exit = 2


class Partial(MqError):
    """Some items failed, the others are done."""

    code = "partial"
    exit = 3


class NotFound(MqError):
    """The topic, group, entry or server named is not there."""

    code = "not_found"
    exit = 4


class Empty(MqError):
    """Nothing was received although something was asked for."""

    code = "empty"
    exit = 5


class Refused(MqError):
    """Not done without an explicit yes."""

    code = "refused"
    exit = 6


class NameInUse(Refused):
    """A live consumer has that name."""

    code = "name_in_use"


class Active(Refused):
    """Consumers are running."""

    code = "active"


class BadData(MqError):
    """An input line, receipt or stored entry that is not what it must be."""

    code = "bad_data"
    exit = 65


class TooLarge(BadData):
    """More bytes than the server or the setting allows."""

    code = "too_large"


class NoInput(MqError):
    """An input file that cannot be read."""

    code = "no_input"
    exit = 66


class Unreachable(MqError):
    """No server at that address, or it went away."""

    code = "unreachable"
    exit = 69


class Loading(Unreachable):
    """The server is still loading its data."""

    code = "loading"


class ClusterDown(Unreachable):
    """The cluster cannot serve that slot."""

    code = "cluster_down"


class OutputFailed(MqError):
    """Standard output cannot be written."""

    code = "output"
    exit = 74


class TimedOut(MqError):
    """The time given was not enough; running again loses nothing."""

    code = "timeout"
    exit = 75


class NotDurable(TimedOut):
    """Stored, but not as durably as was asked for."""

    code = "not_durable"


class UnknownOutcome(TimedOut):
    """The reply was lost: done or not done, nobody can say."""

    code = "unknown_outcome"


class Denied(MqError):
    """The server does not permit this user that command or key."""

    code = "denied"
    exit = 77


class AuthFailed(Denied):
    """Wrong or missing password."""

    code = "auth"


class ReadOnly(Denied):
    """The server is a replica that takes no writes."""

    code = "read_only"


class BadConfig(MqError):
    """A setting, file or directory that makes work impossible."""

    code = "config"
    exit = 78


class HandlerBroken(BadConfig):
    """The handler cannot be started at all."""

    code = "handler"


class Unsupported(BadConfig):
    """The server or the platform lacks what is needed."""

    code = "unsupported_server"


class WrongType(MqError):
    """A key holds another type of value than the format says."""

    code = "wrong_type"


class OutOfMemory(MqError):
    """The server is at its memory limit."""

    code = "out_of_memory"


class LostLease(MqError):
    """Another consumer holds the partition now."""

    code = "lost_lease"


class Interrupted(MqError):
    """Stopped by a signal before the work was done."""

    code = "interrupted"
    exit = 130

    def __init__(self, message: str, *, number: int = 2) -> None:
        super().__init__(message)
        self.number = number


class Undecodable(BadData):
    """A stored entry that does not follow its format. `fields` are its raw bytes.

    `payload` is the payload field where that much was readable, else empty.
    """

    def __init__(
        self,
        message: str,
        *,
        entry_id: str,
        fields: dict[bytes, bytes],
        payload: bytes = b"",
    ) -> None:
        super().__init__(message, id=entry_id)
        self.entry_id = entry_id
        self.fields = fields
        self.payload = payload
