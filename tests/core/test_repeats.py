"""The same call with the same result again and again is told the model once, and then ends the turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolturn import ImagePart, Limits, TextPart, Tool, ToolLoopRepeatError, Turn, run_tool_loop, tool
from toolturn.testing import ScriptedModel
from toolturn.turn import ToolTraits
from toolturn.turn.repeating import HINT

from .parts import (
    USER,
    Text,
    asks,
    begun,
    call,
    echo,
    error_of,
    failing,
    record_of,
    reply,
    result_of,
    run,
    says,
    the_op,
)

THREE = Limits(20, 50, repeats=3)


def calling(turn: Turn, *calls: tuple[Any, ...], content: Any = "the same") -> Turn:
    """The turn after one more batch, in which every call gave this result."""
    number = turn.iterations
    reply(turn, asks(*(call(f"{number}.{place}", *given) for place, given in enumerate(calls))))
    while turn.phase == "tools":
        op = turn.ops()[0]
        turn.apply(op, record_of(op, content))
    return turn


def times(count: int, **options: Any) -> Turn:
    turn = begun(**{"limits": THREE, **options})
    for _ in range(count):
        calling(turn, ("add",))
    return turn


def hinted(turn: Turn) -> list[bool]:
    return ["times now" in str(record.message.content) for record in turn.records]


def test_the_third_time_the_model_is_told_once() -> None:
    turn = times(3)
    assert hinted(turn) == [False, False, True]
    assert turn.messages[-1].content == "the same" + HINT.format(count=3)
    assert the_op(turn).id == "m4"


def with_parts(turn: Turn, *parts: Any) -> Turn:
    """The turn after one more call that gave these parts."""
    reply(turn, asks(call(f"{turn.iterations}.0", "add")))
    op = turn.ops()[0]
    record = record_of(op, "")
    turn.apply(op, replace(record, message=replace(record.message, content=list(parts))))
    return turn


def test_another_image_is_another_result() -> None:
    turn = begun(limits=THREE)
    for number in range(5):
        with_parts(turn, TextPart("shot"), ImagePart(f"data:image/png;base64,AAA{number}"))
    assert not any(hinted(turn))


def test_the_hint_stands_behind_the_parts_and_within_the_bound_of_their_text() -> None:
    image = ImagePart("data:image/png;base64,AAAA")
    turn = begun(limits=replace(THREE, result_bytes=256))
    for _ in range(3):
        with_parts(turn, TextPart("a"), image)
    assert turn.records[-1].message.content == [TextPart("a"), image, TextPart(HINT.format(count=3))]
    for _ in range(3):
        with_parts(turn, image, TextPart("b" * 200))
    text, *others = turn.records[-1].message.content
    assert others == [image]
    assert isinstance(text, TextPart)
    assert len(text.text.encode()) == 256


def test_the_next_time_ends_the_turn_with_all_results_in_the_transcript() -> None:
    turn = times(4)
    assert turn.ops() == ()
    error = error_of(turn)
    assert type(error) is ToolLoopRepeatError
    assert str(error) == "the model called add 4 times with the same arguments and result"
    assert hinted(turn) == [False, False, True, False]


def test_the_next_time_may_lead_to_a_last_answer() -> None:
    turn = times(4, on_limit="answer")
    assert the_op(turn).id == "f4"
    assert result_of(reply(turn, says("I am stuck."))).limit == "repeats"


def test_without_the_limit_nothing_is_said() -> None:
    turn = times(10, limits=Limits(20))
    assert not any(hinted(turn))
    assert turn.phase == "model"


@pytest.mark.parametrize(
    "other",
    [("add", '{"left":2,"right":4}'), ("echo",)],
    ids=["other arguments", "another tool"],
)
def test_another_call_begins_anew(other: tuple[Any, ...]) -> None:
    turn = times(2)
    calling(turn, other)
    calling(calling(turn, ("add",)), ("add",))
    assert not any(hinted(turn))


@pytest.mark.parametrize(("kinds", "hint", "end"), [("ab", 6, 8), ("abc", 9, 12)])
def test_going_in_circles_is_told_and_ends_too(kinds: str, hint: int, end: int) -> None:
    turn = begun({name: ToolTraits() for name in kinds}, limits=Limits(50, 50, repeats=3))
    made = 0
    while turn.exit is None:
        calling(turn, (kinds[made % len(kinds)],))
        made += 1
        assert any(hinted(turn)) == (made >= hint)
    assert type(error_of(turn)) is ToolLoopRepeatError
    assert made == end


def test_a_call_counts_on_over_json_beside_another_that_is_new() -> None:
    turn = begun({name: ToolTraits() for name in "an"}, limits=THREE)
    for made in range(3):
        calling(turn, ("a",), ("n", f'{{"made":{made}}}'))
        turn = Turn.from_json(turn.to_json())
    assert hinted(turn) == [False, False, False, False, True, False]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("add", "half a pair \ud800"),
        ("add", [TextPart("the same"), ImagePart("data:image/png;base64,AAAA")]),
        ("add", None),
        (7, "the same"),
        ({"a": 1}, [TextPart("the same")]),
    ],
)
def test_whatever_was_called_and_came_of_it_is_recognised(name: Any, content: Any) -> None:
    turn = begun(limits=THREE)
    for _ in range(4):
        calling(turn, (name,), content=content)
    assert type(error_of(turn)) is ToolLoopRepeatError


@pytest.mark.parametrize("names", [(7, 8, 9), ({"a": 1}, {"a": 2}, {"a": 3})])
def test_names_that_are_no_text_are_told_apart(names: tuple[Any, ...]) -> None:
    turn = begun(limits=THREE)
    for name in names:
        calling(turn, (name,))
    assert not any(hinted(turn))


def test_results_that_are_no_text_are_told_apart() -> None:
    turn = begun(limits=THREE)
    for made in range(6):
        content: Any = [TextPart("the same"), ImagePart(f"data:image/png;base64,{'A' * 4 * (made + 1)}")]
        calling(turn, ("add",), content=content)
    assert not any(hinted(turn))


def test_circles_are_remembered_over_json() -> None:
    turn = begun({name: ToolTraits() for name in "ab"}, limits=Limits(50, 50, repeats=3))
    for made in range(8):
        calling(turn, ("ab"[made % 2],))
        turn = Turn.from_json(turn.to_json())
    assert type(error_of(turn)) is ToolLoopRepeatError


def test_another_result_begins_anew() -> None:
    turn = times(2)
    calling(turn, ("add",), content="something new")
    calling(calling(turn, ("add",)), ("add",))
    assert not any(hinted(turn))


def test_arguments_are_the_same_whatever_their_order_and_spacing() -> None:
    turn = begun(limits=THREE)
    for arguments in ('{"left":2,"right":{"b":1,"a":[2]}}', '{ "right": {"a":[2],"b":1}, "left": 2 }'):
        calling(turn, ("add", arguments))
    assert hinted(calling(turn, ("add", '{"right":{"b":1,"a":[2]},"left":2}'))) == [False, False, True]


def test_arguments_are_the_same_whatever_the_order_within_a_list_of_objects() -> None:
    turn = begun(limits=Limits(20, repeats=2))
    calling(turn, ("add", '{"items":[{"a":1,"b":2}]}'))
    assert hinted(calling(turn, ("add", '{"items":[{"b":2,"a":1}]}'))) == [False, True]


def test_lists_in_another_order_are_other_arguments() -> None:
    turn = begun(limits=Limits(20, repeats=2))
    assert hinted(calling(calling(turn, ("add", '{"a":[1,2]}')), ("add", '{"a":[2,1]}'))) == [False, False]


@pytest.mark.parametrize("arguments", ["not json", '{"a":1,"a":2}', {"left": 1}, None], ids=str)
def test_arguments_that_can_not_be_read_are_compared_as_they_are(arguments: Any) -> None:
    turn = begun(limits=THREE)
    for _ in range(4):
        calling(turn, ("add", arguments))
    assert type(error_of(turn)) is ToolLoopRepeatError


def test_other_arguments_that_can_not_be_read_are_another_call() -> None:
    turn = begun(limits=Limits(20, repeats=2))
    assert hinted(calling(calling(turn, ("add", "not json")), ("add", "no json"))) == [False, False]


def test_a_call_whose_name_is_no_text_can_repeat_itself_too() -> None:
    turn = begun(limits=THREE)
    for _ in range(4):
        calling(turn, ({"tool": "add"},))
    assert type(error_of(turn)) is ToolLoopRepeatError


def test_equal_calls_within_one_batch_are_one_attempt() -> None:
    turn = begun(limits=THREE)
    calling(turn, ("add",), ("add",), ("add",), ("add",), ("add",))
    assert turn.phase == "model"
    assert not any(hinted(turn))


def test_calls_beside_it_do_not_hide_a_repetition() -> None:
    turn = begun(limits=THREE)
    for number in range(4):
        calling(turn, ("echo", f'{{"text":"{number}"}}'), ("add",))
    assert str(error_of(turn)).startswith("the model called add 4 times")


def test_a_tool_that_is_meant_to_be_called_again_is_exempt() -> None:
    turn = begun({"add": ToolTraits(repeats=True)}, limits=THREE)
    for _ in range(10):
        calling(turn, ("add",))
    assert turn.phase == "model"
    assert not any(hinted(turn))


def test_a_repetition_beside_a_tool_that_is_exempt_is_one() -> None:
    turn = begun({"poll": ToolTraits(repeats=True)}, limits=THREE)
    for _ in range(4):
        calling(turn, ("poll",), ("add",))
    assert hinted(turn)[4:6] == [False, True]
    assert str(error_of(turn)).startswith("the model called add 4 times")


def test_a_direct_answer_is_one_although_it_repeats() -> None:
    turn = times(3)
    op = the_op(reply(turn, asks(call("z"))))
    turn.apply(op, replace(record_of(op, "the same"), return_direct=True))
    assert result_of(turn).return_direct


def test_the_count_is_in_the_json_of_the_turn() -> None:
    turn = Turn.from_json(times(2).to_json())
    assert hinted(calling(turn, ("add",))) == [False, False, True]


def test_a_turn_that_repeats_itself_goes_on_with_a_raised_limit_only() -> None:
    turn = times(4)
    with pytest.raises(ValueError, match=r"limit of 3 equal calls; raise limits\.repeats"):
        turn.reopen((), {})
    turn.reopen((), {}, limits=replace(THREE, repeats=5))
    assert hinted(calling(turn, ("add",)))[-1]


def test_a_hint_stays_within_the_bytes_of_a_result() -> None:
    turn = begun(limits=replace(THREE, result_bytes=300))
    for _ in range(4):
        calling(turn, ("add",), content="x" * 300)
    contents = [str(record.message.content) for record in turn.records]
    assert all(len(content.encode()) <= 300 for content in contents)
    assert contents[2].endswith("or answer.]")
    assert type(error_of(turn)) is ToolLoopRepeatError


@pytest.mark.parametrize("repeats", [1, 0, -1, 2.0, True])
def test_less_than_two_is_no_repetition(repeats: Any) -> None:
    with pytest.raises(ValueError, match=r"limits\.repeats must be"):
        Limits(repeats=repeats)


# --- whole turns -----------------------------------------------------------------------


def asked(*wanted: Tool[Any, Any] | Any, arguments: str = '{"text":"x"}', count: int = 4, name: str = "echo") -> Any:
    """What comes of a turn in which the model makes the same call so often."""
    replies = [asks(call(f"c{number}", name, arguments)) for number in range(count)]
    model = ScriptedModel([*replies, says("done")])
    return run(run_tool_loop([USER], list(wanted), model, limits=THREE, tool_errors="report"))


def test_a_failing_call_that_is_made_again_and_again_ends_the_turn() -> None:
    with pytest.raises(ToolLoopRepeatError):
        asked(failing(ValueError("no"), "echo"))
    with pytest.raises(ToolLoopRepeatError):
        asked(name="nope")
    with pytest.raises(ToolLoopRepeatError):
        asked(echo(), arguments='{"text":7}')


def test_a_tool_that_polls_declares_that_it_may_repeat() -> None:
    assert asked(echo(loop_key=False), count=8).content == "done"


def test_a_tool_may_say_itself_what_makes_two_calls_the_same() -> None:
    page = iter(range(9))

    @tool(loop_key=lambda given: given["page"])
    def read(page: int, wish: str) -> str:
        """Read a page."""
        return "the page"

    replies = [asks(call(f"c{n}", "read", f'{{"page":1,"wish":"{next(page)}"}}')) for n in range(4)]
    with pytest.raises(ToolLoopRepeatError) as caught:
        run(run_tool_loop([USER], [read], ScriptedModel(replies), limits=THREE))
    assert [record.loop_key for record in caught.value.tool_calls] == ["1"] * 4


def test_such_a_function_of_a_tool_with_models_is_given_the_request() -> None:
    seen: list[Any] = []

    def another_each_time(request: Any) -> int:
        seen.append(request)
        return len(seen)

    result = asked(echo(loop_key=another_each_time), count=6)
    assert result.content == "done"
    assert seen == [Text(text="x")] * 6
