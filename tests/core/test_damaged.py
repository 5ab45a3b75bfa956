"""A document that is damaged is a ValueError with one sentence, and never anything else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolturn import Limits, Turn, Usage, error_from_json, error_to_json, result_from_json, result_to_json

from .parts import asks, begun, call, error_of, record_of, reply, result_of, says, the_op
from .strategies import json_values


def _in_tools() -> Turn:
    turn = reply(begun(limits=Limits(deadline=5.0)), asks(call("a"), call("b"), usage=Usage(1, 2, 3, 4)))
    op = the_op(turn)
    turn.apply(op, record_of(op))
    return turn


def _forced() -> Turn:
    return reply(begun(limits=Limits(tool_calls=0), on_limit="answer"), asks(call("a")))


def _ended() -> Turn:
    turn = _in_tools()
    op = the_op(turn)
    turn.apply(op, record_of(op))
    return reply(turn, says("cut", "length", raw={"id": 1}, usage=Usage(1)))


def _answered() -> Turn:
    turn = _in_tools()
    op = the_op(turn)
    turn.apply(op, record_of(op))
    return reply(turn, says("Hi."))


DOCUMENTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "turn that waits for the model": (begun().to_json(), Turn.from_json),
    "turn that waits for tools": (_in_tools().to_json(), Turn.from_json),
    "turn at a limit": (_forced().to_json(), Turn.from_json),
    "turn with an error": (_ended().to_json(), Turn.from_json),
    "turn with an answer": (_answered().to_json(), Turn.from_json),
    "result": (result_to_json(result_of(_answered())), result_from_json),
    "error": (error_to_json(error_of(_ended())), error_from_json),
}


def every_place(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a document; but what a model sent may be anything, and a state has its own tests."""
    if path:
        yield path
    if path and path[-1] in ("raw", "rejected", "rejected_response", "state"):
        return
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from every_place(item, (*path, key))


def changed(document: str, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> str:
    data = copy.deepcopy(json.loads(document))
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    change(inner, path[-1])
    return json.dumps(data)


def drop(inner: Any, key: Any) -> None:
    del inner[key]


def replaced_by(value: Any) -> Callable[[Any, Any], None]:
    def change(inner: Any, key: Any) -> None:
        inner[key] = value

    return change


def use(thing: Any) -> None:
    """What is done with a document that was read: none of it may fail."""
    if isinstance(thing, Turn):
        for _ in range(2):
            assert isinstance(thing.ops(), tuple)
            assert (thing.exit is None) == (thing.phase != "ended")
            assert isinstance(thing.messages, tuple)
            assert isinstance(thing.records, tuple)
            assert repr(thing)
            Turn.from_json(thing.to_json())
            thing.cancel()


def read_or_refused(read: Callable[[str], Any], text: str) -> bool:
    """Whether the document was refused, as it has to be when it is."""
    try:
        thing = read(text)
    except ValueError as exc:
        refusal = exc
    else:
        use(thing)
        return False
    assert type(refusal) is ValueError
    assert str(refusal)
    assert "\n" not in str(refusal)
    assert len(str(refusal)) < 300
    return True


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_themselves_are_read(name: str) -> None:
    document, read = DOCUMENTS[name]
    assert not read_or_refused(read, document)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_without_one_of_its_keys_is_refused(name: str) -> None:
    document, read = DOCUMENTS[name]
    accepted = []
    for path in every_place(json.loads(document)):
        in_a_message = "messages" in path or path[-2:-1] == ("message",)
        optional = in_a_message and path[-1] in ("tool_calls", "tool_call_id")
        if isinstance(path[-1], str) and not optional and not read_or_refused(read, changed(document, path, drop)):
            accepted.append(".".join(map(str, path)))
    assert accepted == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_with_a_key_that_was_never_written_is_refused(name: str) -> None:
    document, read = DOCUMENTS[name]
    data = json.loads(document)
    places = [(key,) for key in ("limits", "usage", "ending") if isinstance(data.get(key), dict)]
    for path in [(), *places]:
        assert read_or_refused(read, changed(document, (*path, "more"), replaced_by(1))), path


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_with_a_wrong_value_is_refused_or_can_be_used(name: str) -> None:
    document, read = DOCUMENTS[name]
    for path in every_place(json.loads(document)):
        for wrong in (None, 7, -1, 1.5, True, "x", "", [], [7], {}, {"a": 1}):
            read_or_refused(read, changed(document, path, replaced_by(wrong)))


WRONG: dict[str, list[Any]] = {
    "phase": [None, 7, "nowhere", []],
    "limits": [None, 7, [], {}, {"iterations": 4}, {"iterations": "4", "tool_calls": 16}],
    "on_limit": [None, 7, "stop", []],
    "tool_errors": [None, 7, "hide", []],
    "iterations": [None, "1", -1, 1.5, []],
    "retries": [None, "1", -1, []],
    "accepted": [None, "1", -1, []],
    "seconds": [None, "1", -1.0, []],
    "usage": [None, 7, {}, {"input": "many", "output": 0, "cached": 0, "reasoning": 0}],
    "turn_id": [None, 7, []],
    "messages": [None, 7, "x", {}, [7], [{}]],
    "records": [None, 7, {}, [7], [{}]],
    "calls": [None, 7, {}, [7], [{}]],
    "outcomes": [7, {}, [7], [{}], [None]],
    "limit": [7, [], ["ToolLoopError"], ["RuntimeError", "text", None], [7, 7, 7], {}],
    "ending": [7, [], {}, {"class": "RuntimeError"}],
}


@pytest.mark.parametrize("key", WRONG)
def test_a_turn_with_a_wrong_value_at_one_of_its_keys_is_refused(key: str) -> None:
    document = begun().to_json()
    accepted = [
        value
        for value in WRONG[key]
        if not read_or_refused(Turn.from_json, changed(document, (key,), replaced_by(value)))
    ]
    assert accepted == []


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("turn that waits for the model", "phase", "tools"),
        ("turn that waits for the model", "phase", "forced"),
        ("turn that waits for the model", "phase", "ended"),
        ("turn that waits for tools", "phase", "model"),
        ("turn that waits for tools", "phase", "new"),
        ("turn that waits for tools", "outcomes", [None]),
        ("turn that waits for tools", "calls", []),
        ("turn with an error", "ending", None),
        ("turn with an error", "phase", "model"),
        ("turn at a limit", "limit", None),
        ("turn that waits for tools", "accepted", 7),
        ("turn with an answer", "accepted", 0),
        ("turn with an answer", "records", []),
        ("turn that waits for tools", "outcomes.0.call.id", "another"),
    ],
)
def test_a_turn_whose_parts_do_not_agree_is_refused(name: str, path: str, value: Any) -> None:
    document, read = DOCUMENTS[name]
    steps = tuple(int(step) if step.isdigit() else step for step in path.split("."))
    with pytest.raises(ValueError, match=r"^this saved turn is damaged: ValueError its parts do not agree$"):
        read(changed(document, steps, replaced_by(value)))


def test_a_turn_that_waits_for_a_last_answer_has_no_open_calls() -> None:
    turn = reply(begun(limits=Limits(iterations=1), on_limit="answer"), asks(call("a")))
    op = the_op(turn)
    waiting = json.loads(turn.to_json())
    turn.apply(op, record_of(op))
    turn.ops()
    forced = json.loads(turn.to_json())
    assert not read_or_refused(Turn.from_json, json.dumps(forced))
    assert read_or_refused(Turn.from_json, json.dumps({**waiting, "phase": "forced", "limit": forced["limit"]}))


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.0, [], "9" * 1000], ids=lambda v: json.dumps(v)[:10])
def test_another_version_is_refused(version: Any) -> None:
    for document, read in DOCUMENTS.values():
        assert read_or_refused(read, changed(document, ("v",), replaced_by(version)))


def test_another_version_is_named() -> None:
    with pytest.raises(ValueError, match=r"^this turn was saved in version 2; this toolturn reads version 1$"):
        Turn.from_json(changed(begun().to_json(), ("v",), replaced_by(2)))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_another_document_is_refused_by_its_kind(name: str) -> None:
    document, read = DOCUMENTS[name]
    for other, _ in DOCUMENTS.values():
        if json.loads(other)["kind"] != json.loads(document)["kind"]:
            with pytest.raises(ValueError, match=r"^this is no saved (turn|result|error)$"):
                read(other)


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[" * 100_000, '{"a":' * 100_000, "7", "null", "[]", "{}", '{"v":1}', "1" * 5000, "\ud800", "NaN"],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("name", ["turn at a limit", "result", "error"])
def test_what_is_no_document_is_refused(name: str, text: str) -> None:
    assert read_or_refused(DOCUMENTS[name][1], text)


@pytest.mark.parametrize("thing", [None, 7, b"\xff", ["{}"]])
def test_what_is_no_text_is_refused(thing: Any) -> None:
    for _, read in DOCUMENTS.values():
        assert read_or_refused(read, thing)


@pytest.mark.parametrize("name", DOCUMENTS)
@given(data=st.data())
def test_a_document_with_anything_anywhere_is_refused_or_can_be_used(name: str, data: st.DataObject) -> None:
    document, read = DOCUMENTS[name]
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(every_place(json.loads(document)))))
        document = changed(document, path, replaced_by(data.draw(json_values)))
    read_or_refused(read, document)


@pytest.mark.parametrize("name", DOCUMENTS)
@given(cut=st.integers(0, 5000))
def test_a_document_that_was_cut_off_is_refused(name: str, cut: int) -> None:
    document, read = DOCUMENTS[name]
    assert read_or_refused(read, document[: cut % len(document)])


@pytest.mark.parametrize("name", ["RuntimeError", "ValueError", "Usage", "Any", "__name__", "ToolError", "", "nothing"])
def test_a_class_that_is_no_error_of_a_turn_is_refused(name: str) -> None:
    document, read = DOCUMENTS["error"]
    assert read_or_refused(read, changed(document, ("class",), replaced_by(name)))
    document, read = DOCUMENTS["turn with an error"]
    with pytest.raises(ValueError, match=f"^this saved turn is damaged: TypeError {name} is no ToolLoopError$"):
        read(changed(document, ("ending", "class"), replaced_by(name)))
