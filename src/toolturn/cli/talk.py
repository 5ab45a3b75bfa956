"""A conversation: all that was said in it, and what of it the model is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from toolturn import codec
from toolturn.messages import ChatMessage, TextPart
from toolturn.transcript import check, rough_tokens, trim

from . import saved

# Of a window that is full a quarter is made free at once: a history that is cut anew at each question has another
# beginning each time, and a model then reads all of it again.
_REFILL = 0.75


Mark: TypeAlias = tuple[Sequence[ChatMessage], Sequence[ChatMessage]]


class Talk:
    """A conversation, valid between any two turns.

    Args:
        messages: What was said before; a valid transcript.
        limit: Tokens of messages that the model can be shown, as :func:`~toolturn.transcript.rough_tokens` counts
            them; None where that is not known.

    Attributes:
        messages: All that was said, oldest first.
        shown: What the model is shown of it.
        limit: As above; learned when a model says that it was too much.
    """

    def __init__(self, messages: Sequence[ChatMessage] = (), limit: int | None = None) -> None:
        self.messages = list(messages)
        self.shown = list(messages)
        self.limit = limit

    def say(self, text: str) -> None:
        """Add what the user says.

        A question that was not answered and what follows it become one message: many models refuse two in a row.

        Args:
            text: What the user says.
        """
        message = ChatMessage("user", text)
        if self.messages and self.messages[-1].role == "user":
            message = ChatMessage("user", _joined(self.messages[-1].content, text))
            del self.messages[-1], self.shown[-1]
        self.add([message])

    def mark(self) -> Mark:
        """Return where the conversation stands, for :meth:`go_back`."""
        return tuple(self.messages), tuple(self.shown)

    def go_back(self, mark: Mark) -> None:
        """Go back to where the conversation stood; what was learned of the window is kept.

        Args:
            mark: What :meth:`mark` gave.
        """
        self.messages, self.shown = map(list, mark)

    def is_question_alone(self) -> bool:
        """Return whether the model was shown a question without an answer and nothing older."""
        return [message.role for message in self.shown if message.role != "system"] == ["user"]

    def add(self, messages: Sequence[ChatMessage]) -> None:
        """Add what came of a turn.

        Args:
            messages: Its messages, those it began with left out.
        """
        self.messages += messages
        self.shown += messages

    def replace(self, messages: Sequence[ChatMessage]) -> None:
        """Go on with another conversation.

        Args:
            messages: What was said in it; a valid transcript.
        """
        self.messages, self.shown = list(messages), list(messages)

    def undo(self) -> ChatMessage | None:
        """Remove the last question with everything after it, and return the question; None where there is none."""
        for place in range(len(self.messages) - 1, -1, -1):
            if (message := self.messages[place]).role == "user":
                del self.messages[place:]
                self.shown = list(self.messages)
                return message
        return None

    def instruct(self, text: str) -> None:
        """Set the system message, in place of the one at the beginning where there is one.

        Args:
            text: The message.
        """
        message = ChatMessage("system", text)
        for messages in (self.messages, self.shown):
            messages[: _has_system(messages)] = [message]

    @property
    def instruction(self) -> ChatMessage | None:
        """The system message at the beginning."""
        return self.messages[0] if _has_system(self.messages) else None

    # --- the window ------------------------------------------------------------------

    def fit(self) -> int:
        """Leave out the oldest where the limit is passed, and return how many messages that are."""
        tokens = sum(map(rough_tokens, self.shown))
        if self.limit is None or tokens <= self.limit:
            return 0
        return self._trim(int(self.limit * _REFILL))

    def overflowed(self) -> int:
        """Take that the model can not be shown so much, leave out the older half, and return how many messages."""
        tokens = sum(map(rough_tokens, self.shown))
        self.limit = tokens * 9 // 10
        return self._trim(tokens // 2)

    def _trim(self, budget: int) -> int:
        trimmed = trim(self.shown, budget)
        self.shown = list(trimmed.messages)
        return len(trimmed.dropped)

    # --- files -----------------------------------------------------------------------

    def save(self, file: str) -> Path:
        """Write all messages to a file that only its owner can read, as ``--messages`` reads them.

        Args:
            file: The file; one that is there is replaced.

        Raises:
            ValueError: It can not be written; one sentence says why.
        """
        try:
            path = Path(file).expanduser()
            saved.write_private(path, codec.messages_to_json(self.messages) + "\n")
        except (OSError, ValueError, RuntimeError) as exc:  # a name with a null, a home that is not known
            raise ValueError(f"{file} can not be written: {_why(exc)}") from None
        return path


def messages_in(file: str) -> tuple[ChatMessage, ...]:
    """Return the messages of a file.

    Args:
        file: A JSON list of messages, or an object with the key ``messages``.

    Raises:
        ValueError: It can not be read, or is no valid transcript; one sentence says why.
    """
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{file} can not be read: it is no text in UTF-8") from None
    except (OSError, ValueError, RuntimeError) as exc:
        raise ValueError(f"{file} can not be read: {_why(exc)}") from None
    try:
        messages = codec.messages_from_json(text)
    except ValueError as exc:
        raise ValueError(f"{file}: {exc}") from None
    if faults := check(messages):
        raise ValueError(f"{file}: the messages are no valid transcript: {faults[0]}")
    return messages


def _why(exc: Exception) -> str:
    return getattr(exc, "strerror", None) or str(exc)


def _has_system(messages: Sequence[ChatMessage]) -> bool:
    return bool(messages) and messages[0].role == "system"


def _joined(before: Any, text: str) -> Any:
    if not isinstance(before, str):
        return [*before, TextPart(text)]
    return text if before in ("", text) else f"{before}\n\n{text}"
