"""A session as our edge reads it: what the reference is to be given so that it must do what ours does."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

Session = dict[str, Any]

DEFAULT = 10
REPEATS = 3
"""How often in a row the same call may give the same result before the model is asked for an answer."""

_ACTION = re.compile(r"Action: (\S+)\nAction Input:\s*(\{.*)", re.DOTALL)


def refused(session: Session) -> bool:
    """Return whether the number of rounds is none.

    Args:
        session: The session.
    """
    value = session["config"].get("max_iterations", DEFAULT)
    return not (isinstance(value, (int, str)) and str(value).isdigit())


def meant(session: Session) -> tuple[Session, set[str]]:
    """Return the session that the reference is to play, and which differences it takes into account.

    Args:
        session: The session as it was made; its number of rounds is one.
    """
    made, met = deepcopy(session), set[str]()
    for box in made["toolboxes"]:
        for tool in box:
            if tool["does"] == "leave":
                tool["does"] = "fail"  # told as the failure of a tool
    if prompt := made["config"].pop("system_prompt", ""):
        made["messages"] = _prompted(prompt, made["messages"])
        if made["entry"] == "get_response":
            made["entry"] = "continue_chat"  # of the messages, which are more than one now
        met.add("system-prompt")
    made["script"], made["config"]["max_iterations"], names = _script(session)
    return made, met | names


def _prompted(prompt: str, messages: list[Any]) -> list[Any]:
    if messages and messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{prompt}\n\n{messages[0]['content']}"}, *messages[1:]]
    return [{"role": "system", "content": prompt}, *messages]


def _script(session: Session) -> tuple[list[Any], int, set[str]]:
    """The replies until the turn ends, the rounds it has, and the differences met on the way."""
    rounds = int(session["config"].get("max_iterations", DEFAULT))
    guarded = "max_repeats" not in session["config"]
    script: list[Any] = []
    met: set[str] = set()
    guard = _Guard()
    asked_again = retried = False
    played = 0
    for reply in session["script"]:
        if reply.get("free") and not retried:
            retried = True
            met.add("busy")
            continue
        retried = False
        replies = [reply] if reply.get("free") else reply.get("means", [reply])
        if reply.get("blank") and not asked_again and played + 1 < rounds:
            asked_again = True
            rounds -= 1
            met.add("empty")
            continue
        met |= set(reply.get("difference", ())) if "means" in reply else set()
        script += replies
        if played >= rounds or not reply.get("acts"):
            break
        played += 1
        if guarded and guard.stuck(replies[-1]):
            met.add("repeats")
            rounds = played
    return script, rounds, met


class _Guard:
    """Counts equal calls, whose results are equal here too."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._last: set[str] = set()

    def stuck(self, reply: dict[str, Any]) -> bool:
        calls = {json.dumps(call, sort_keys=True) for call in _called(reply)}
        before = dict(self._counts)
        if not calls <= set(before):  # something new
            self._counts = dict.fromkeys(before, 0)
        for call in calls:
            self._counts[call] = 1 + (before[call] if call in self._last else self._counts.get(call, 0))
        self._last = calls
        return any(self._counts[call] > REPEATS for call in calls)


def _called(reply: dict[str, Any]) -> list[Any]:
    if reply.get("calls"):
        return [[call["name"], call["arguments"]] for call in reply["calls"]]
    found = _ACTION.search(reply["content"] or "")
    if found is None:
        return []
    return [[found[1], json.JSONDecoder().raw_decode(found[2])[0]]]
