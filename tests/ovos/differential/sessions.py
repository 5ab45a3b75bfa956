"""Random sessions: what a user asked, what a brain replies, which tools there are, and what each odd reply means.

A reply that our edge reads as something else has that under ``means``: replies that the reference is given in its
place, so that both engines must then do the same. ``difference`` names the entry of docs/ovos-differences.md for it.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

Reply = dict[str, Any]
Session = dict[str, Any]

TOOLS = ("echo", "add", "find", "clock", "fail")
ODD_TOOLS = ("leave", "nothing", "plain", "wrong", "huge")
ANSWERS = (
    "Done.",
    "It is ten past three. The next train leaves at 3.15 p.m. from track 4!",
    "Two lines.\nThe second one.",
    "  blanks around it \n",
    "*bold* and a list:\n- one\n- two",
    "{}",
    "Grüße aus Köln. 你好。",
    "42",
)
PREAMBLES = ("", "", "", "Let me see.", "One moment, I look it up")
WORDS = ("a", "b", "hello", "naïve", "two words", 'a "quoted" one', "braces {x}", "C:\\path", "tab\tand\nline", "🙂")


class _Script:
    """What a brain replies in one session, with ids that are used once unless they are meant to be wrong."""

    def __init__(self, rng: Random, tools: list[str], odd: float) -> None:
        self.rng = rng
        self.tools = tools
        self.odd = odd
        self.used: list[str] = []
        self.replaced = 0

    def fresh(self) -> str:
        self.used.append(f"{self.rng.choice(('c', 'call_', 'toolu_'))}{len(self.used)}")
        return self.used[-1]

    def new(self) -> str:
        """The place of an id that our edge makes."""
        self.replaced += 1
        return f"?{self.replaced}"

    def arguments(self, tool: str) -> dict[str, Any]:
        rng = self.rng
        if tool == "echo":
            made: dict[str, Any] = {"text": rng.choice(WORDS)}
            return made if rng.random() < 0.7 else made | {"times": rng.randint(0, 3)}
        if tool == "add":
            return {"a": rng.randint(-9, 99), "b": rng.randint(0, 9)}
        if tool == "find":
            return {"query": {"word": rng.choice(WORDS), "most": rng.randint(1, 9)}, "where": ["x"] * rng.randint(0, 2)}
        return {}

    def call(self) -> tuple[Reply, Reply, list[str]]:
        """A call as the brain makes it, as it is meant, and which differences that holds."""
        rng = self.rng
        tool = rng.choice(self.tools)
        call: Reply = {"id": "", "name": tool, "arguments": self.arguments(tool)}
        meant = dict(call)
        found: list[str] = []
        odd = rng.random() < self.odd
        kind = rng.randrange(12) if odd else -1
        if kind == 0:
            call["arguments"] = meant["arguments"] = {}
        elif kind == 1:
            wrong = {"text": 1, "a": "x", "b": None, "query": "word"}
            call["arguments"] = meant["arguments"] = {key: wrong.get(key, 1) for key in meant["arguments"]}
        elif kind == 2:
            call["arguments"] = meant["arguments"] = meant["arguments"] | {"unknown": [1, {"x": None}]}
        elif kind == 3:
            call["name"] = meant["name"] = rng.choice(("nope", "ech", "echo2", "Nope!", "search web"))
        elif kind == 4:
            call["arguments"] = json.dumps(meant["arguments"], ensure_ascii=rng.random() < 0.5)
            found.append("arguments-text")
        elif kind == 5:
            call["arguments"], meant["arguments"] = None, {}
            found.append("arguments-text")
        elif kind == 6:
            call["arguments"] = meant["arguments"] = rng.choice((["a"], '{"text": "a', 7, "word", [], "[1]"))
        elif kind in (7, 8) and tool in TOOLS:
            call["name"] = rng.choice((tool.upper(), tool.capitalize(), f" {tool} ", f"functions.{tool}"))
            found.append("names")
        elif kind == 9:
            call["as"] = "dict"
            found.append("dictionaries")
        wrong_id = rng.random() < self.odd / 4
        if wrong_id:
            call["id"] = rng.choice((None, "", 7, rng.choice(self.used) if self.used else None))
            meant["id"] = self.new()
            found.append("ids")
        else:
            call["id"] = meant["id"] = self.fresh()
        return call, meant, found

    def calls(self) -> Reply:
        rng = self.rng
        content = rng.choice(PREAMBLES)
        made = [self.call() for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        found = [name for _, _, names in made for name in names]
        reply: Reply = {"content": content, "calls": [each[0] for each in made], "acts": True}
        if rng.random() < self.odd / 8:
            reply["content"] = None
        if found:
            reply["means"] = [{"content": reply["content"], "calls": [each[1] for each in made]}]
            reply["difference"] = sorted(set(found))
        return reply

    def native(self) -> Reply:
        """A reply of a brain that calls tools, which is no plain answer."""
        rng = self.rng
        if rng.random() > self.odd / 4:
            return self.calls()
        kind = rng.randrange(6)
        if kind == 0:
            return blank(rng)
        if kind == 1:
            return (
                {"raises": ["RuntimeError", "out of order"]} if rng.random() < 0.7 else {"raises": ["ValueError", ""]}
            )
        if kind == 2:
            return {"returns": None, "difference": ["no-message"]}
        if kind == 3 and rng.random() < 0.1:
            return {"raises": ["ConnectionError", "busy"], "means": [], "free": True, "difference": ["busy"]}
        if kind == 4:
            tool = rng.choice([each for each in self.tools if each in TOOLS] or ["echo"])
            if tool in self.tools:
                arguments = self.arguments(tool)
                text = f"<tool_call>{json.dumps({'name': tool, 'arguments': arguments})}</tool_call>"
                meant = {"content": "", "calls": [{"id": self.new(), "name": tool, "arguments": arguments}]}
                return {"content": text, "calls": None, "means": [meant], "difference": ["leaked"], "acts": True}
        return self.calls()

    # --- text ------------------------------------------------------------------------

    def written(self) -> Reply:
        """A reply of a brain that writes, which is no plain answer."""
        rng = self.rng
        tool = rng.choice(self.tools)
        arguments = self.arguments(tool)
        if rng.random() < 0.1:
            tool, arguments = rng.choice((("nope", {}), (tool, {"unknown": 1})))
        thought = rng.choice(("", "Thought: I should look.\n", "Thought: the user wants it.\n"))
        plain = _action(thought, tool, arguments)
        if rng.random() > self.odd:
            text = rng.choice((plain, plain, plain.replace("Input: ", "Input:\n"), plain + "\n", "\n" + plain))
            return {"content": text, "acts": True}
        given = json.dumps(arguments)
        forms = {
            f"{thought}Action: [{tool}]\nAction Input: {given}": "react-forms",
            f"{thought}Action: `{tool}`\nAction Input: {given}": "react-forms",
            f"{thought}**Action:** {tool}\n**Action Input:** {given}": "react-forms",
            f"{thought}action: {tool}\naction input: {given}": "react-forms",
            f"{thought}Action : {tool}\nAction Input : {given}": "react-forms",
            f"{thought}Action: {tool}\nAction Input:\n```json\n{given}\n```": "react-forms",
            f"{thought}Action: {tool}({given})": "react-forms",
            f"{thought}Action: {tool}\nAction Input: {given[:-1].rstrip()}{',' if arguments else ''}}}": "react-forms",
            f"{plain}\nObservation: made up\nFINAL_ANSWER: made up": "react-invented",
            f"{plain}\nObservation: made up": "react-invented",
            f"{plain}\nAction: clock\nAction Input: {{}}": "react-first",
            f"<think>Action: fail\nAction Input: {{}}</think>\n{plain}": "react-thinking",
        }
        text, name = rng.choice(list(forms.items()))
        return {"content": text, "means": [{"content": plain}], "difference": [name], "acts": True}

    def written_answer(self) -> Reply:
        rng = self.rng
        answer = rng.choice(ANSWERS).strip()
        if rng.random() > self.odd:
            forms = (answer, f"FINAL_ANSWER: {answer}", f"Thought: I know it.\nFINAL_ANSWER: {answer}")
            return {"content": rng.choice(forms)}
        forms = (f"Final Answer: {answer}", f"final_answer: {answer}", f"**FINAL_ANSWER:** {answer}")
        meant = {"content": f"FINAL_ANSWER: {answer}"}
        return {"content": rng.choice(forms), "means": [meant], "difference": ["react-answers"]}


def blank(rng: Random) -> Reply:
    return {"content": rng.choice(("", None, "  \n")), "calls": rng.choice((None, [])), "blank": True}


def _action(thought: str, tool: str, arguments: dict[str, Any]) -> str:
    return f"{thought}Action: {tool}\nAction Input: {json.dumps(arguments)}"


def session(seed: int) -> Session:
    """Return the session of a seed.

    Args:
        seed: Any number; the same one gives the same session.
    """
    rng = Random(f"ovos {seed}")
    writes = rng.random() < 0.3
    made: Session = {"seed": seed, "engine": "native", "brain": "text" if writes else "native", "config": _config(rng)}
    if (writes and rng.random() < 0.5) or rng.random() < 0.05:
        made["engine"] = "react"
        writes = True
    if rng.random() < 0.01:
        made["brain"] = None
    made["toolboxes"] = _toolboxes(rng)
    names = [tool["name"] for box in made["toolboxes"] for tool in box]
    odd = rng.choice((0.0, 0.0, 0.1, 0.4)) if names else 0.0
    script = _Script(rng, sorted(set(names)) or list(TOOLS), odd)
    one = script.written if writes else script.native
    made["script"] = [one() for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 6, 11)))] if names or not writes else []
    if rng.random() < 0.03 and made["script"]:
        made["script"] = [again(made["script"][0], script) for _ in range(8)]
    made["script"].append(_end(rng, script, writes))
    made["messages"] = _messages(rng)
    made["entry"] = rng.choice(("continue_chat", "continue_chat", "stream_tokens", "stream_sentences", "get_response"))
    made["given_tools"] = rng.choice((None, None, None, [], [{"type": "function", "function": {"name": "theirs"}}]))
    if made["entry"] == "get_response":
        made["messages"] = [{"role": "user", "content": "and now?"}]
    made["known"] = {
        "session_id": rng.choice(("default", "s1", "a b")),
        "lang": rng.choice((None, "en-US", "de-DE", "pt")),
        "units": rng.choice((None, "metric", "imperial")),
    }
    return made


def again(reply: Reply, script: _Script) -> Reply:
    """The same reply once more, its calls under new ids."""
    if "means" in reply or not reply.get("calls"):
        return reply if "means" not in reply else {"content": "Enough."}
    return reply | {"calls": [call | {"id": script.fresh()} for call in reply["calls"]]}


def _end(rng: Random, script: _Script, writes: bool) -> Reply:
    if rng.random() < script.odd / 8:
        return {"raises": ["RuntimeError", "it broke at the end"]}
    if rng.random() < script.odd / 4:
        return blank(rng)
    if writes:
        return script.written_answer()
    return {"content": rng.choice(ANSWERS), "calls": rng.choice((None, None, []))}


def _config(rng: Random) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if rng.random() < 0.7:
        made["max_iterations"] = rng.choice((0, 1, 1, 2, 2, 3, 4, 5))
    elif rng.random() < 0.1:
        made["max_iterations"] = rng.choice((-1, "abc", "3", None))
    if rng.random() < 0.8:
        made["max_repeats"] = None
    if rng.random() < 0.05:
        made["system_prompt"] = "Be kind."
    if rng.random() < 0.05:
        made["enabled"] = True
    return made


def _toolboxes(rng: Random) -> list[list[dict[str, str]]]:
    if rng.random() < 0.04:
        return [] if rng.random() < 0.5 else [[]]
    names = rng.sample(TOOLS, rng.randint(1, 4))
    if rng.random() < 0.2:
        names += rng.sample(ODD_TOOLS, rng.randint(1, 2))
    tools = [{"name": name, "does": name} for name in names]
    if rng.random() < 0.6:
        return [tools]
    cut = rng.randint(0, len(tools))
    second = tools[cut:]
    if cut and rng.random() < 0.2:  # two tools of one name, the second of which does something else
        second = [*second, {"name": tools[0]["name"], "does": "clock"}]
    return [tools[:cut], second]


def _messages(rng: Random) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    if rng.random() < 0.4:
        made.append({"role": "system", "content": rng.choice(("You are kind.", "Be brief.\nSay no more."))})
    for number in range(rng.choice((0, 0, 1, 2))):
        made.append({"role": "user", "content": f"question {number}"})
        if rng.random() < 0.2:
            call = {"id": f"old{number}", "name": "echo", "arguments": {"text": "a"}}
            made.append({"role": "assistant", "content": "", "calls": [call]})
            made.append({"role": "tool", "content": "text='a'", "tool_call_id": f"old{number}", "name": "echo"})
        made.append({"role": "assistant", "content": f"answer {number}"})
    if rng.random() < 0.98:
        made.append({"role": "user", "content": rng.choice(("What is it?", "Wie spät ist es?", "go", "a\n\nb"))})
    elif rng.random() < 0.5:
        made = []
    return made
