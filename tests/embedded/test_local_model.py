"""The embedded model as a ChatModel: it is the real one, at temperature 0."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import BaseModel

from toolturn import (
    ChatMessage,
    ChatModel,
    ChatResponse,
    Delta,
    ModelContextError,
    ModelError,
    ModelSettings,
    ModelUnavailableError,
    ToolSet,
    Turn,
    run_tool_loop,
    stream_tool_loop,
    tool,
)
from toolturn.events import Text, ToolResult
from toolturn.local import WeightsError, local_model
from toolturn.local.runtime import LocalModel
from toolturn.transcript import check

pytestmark = [pytest.mark.model, pytest.mark.timeout(120)]


@tool(effect="none")
def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression with + - * / ( ) and numbers."""
    left, right = expression.split("*")
    return str(int(left) * int(right))


@pytest.fixture(scope="module")
def model() -> ChatModel:
    return local_model()


def user(text: str) -> tuple[ChatMessage, ...]:
    return (ChatMessage("user", text),)


def test_it_calls_a_tool_and_answers_with_the_result(model: ChatModel) -> None:
    result = asyncio.run(run_tool_loop(user("What is 17 * 24?"), ToolSet([calculator]), model))
    assert [record.message.content for record in result.tool_calls] == ["408"]
    assert "408" in result.content
    assert result.usage.input > 0
    assert result.usage.output > 0


class Product(BaseModel):
    """A product and its factors."""

    first: int
    second: int
    product: int


def test_an_answer_of_a_type_is_made_with_the_results_of_tools(model: ChatModel) -> None:
    settings = ModelSettings(temperature=0, max_tokens=120)
    question = user("What is 17 * 24?")
    result = asyncio.run(run_tool_loop(question, ToolSet([calculator]), model, answer_type=Product, settings=settings))
    assert result.value == Product(first=17, second=24, product=408)
    assert [record.message.content for record in result.tool_calls] == ["408"]


def test_text_streams_and_equals_the_answer(model: ChatModel) -> None:
    async def turn() -> tuple[list[str], str]:
        async with stream_tool_loop(user("What is 3 * 5?"), ToolSet([calculator]), model) as events:
            pieces: list[str] = []
            async for event in events:
                if isinstance(event, ToolResult):
                    pieces.clear()
                elif isinstance(event, Text):
                    pieces.append(event.text)
            return pieces, (await events.result()).content

    pieces, content = asyncio.run(turn())
    assert len(pieces) > 1
    assert "".join(pieces).strip() == content


def test_an_answer_may_have_many_lines_while_tools_are_offered(model: ChatModel) -> None:
    question = "Write a poem of two stanzas about the sea. Do not use a tool."
    settings = ModelSettings(temperature=0, max_tokens=120)
    response = asyncio.run(model.complete(user(question), ToolSet([calculator]).definitions, settings=settings))
    assert response.tool_calls is None
    assert "\n" in response.content


def test_a_conversation_goes_on_after_a_tool_was_used(model: ChatModel) -> None:
    async def talk() -> str:
        first = await run_tool_loop(user("What is 6 * 7?"), ToolSet([calculator]), model)
        later = [*first.messages, ChatMessage("user", "Thank you! Say goodbye in one word, please.")]
        return (await run_tool_loop(later, (), model)).content

    assert asyncio.run(talk())


def test_a_required_call_is_made_whatever_is_asked(model: ChatModel) -> None:
    settings = ModelSettings(tool_choice="required")
    response = asyncio.run(model.complete(user("Hello!"), ToolSet([calculator]).definitions, settings=settings))
    assert response.tool_calls is not None
    assert response.tool_calls[0].name == "calculator"


def test_a_reply_that_reaches_its_bound_is_marked_as_cut(model: ChatModel) -> None:
    response = asyncio.run(model.complete(user("Count to 100."), settings=ModelSettings(max_tokens=5)))
    assert response.finish_reason == "length"


def test_messages_beyond_the_window_are_a_context_error_with_both_figures(model: ChatModel) -> None:
    with pytest.raises(ModelContextError, match=r"need \d+ tokens, the model's window has 8192"):
        asyncio.run(model.complete(user("word " * 9000)))


def test_half_a_surrogate_pair_in_a_message_is_no_crash(model: ChatModel) -> None:
    response = asyncio.run(model.complete(user("Say hi \ud800"), settings=ModelSettings(max_tokens=3)))
    assert isinstance(response, ChatResponse)


def test_cancelling_frees_the_caller_at_once_and_ends_the_generation(weights: Path) -> None:
    async def cancelled() -> float:
        model = LocalModel(weights)
        turn = Turn()
        started = asyncio.Event()

        def emit(event: object) -> None:
            if isinstance(event, Text):
                started.set()

        task = asyncio.ensure_future(
            run_tool_loop(user("Count from 1 to 500 in words."), (), model, turn=turn, emit=emit)
        )
        await asyncio.wait_for(started.wait(), 60)
        began = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        freed = time.perf_counter() - began
        assert check(turn.messages) == []
        # the next request is served at once: the one before has really ended
        began = time.perf_counter()
        await model.complete(user("Hi"), settings=ModelSettings(max_tokens=1))
        assert time.perf_counter() - began < 20
        return freed

    assert asyncio.run(cancelled()) < 0.5


def test_leaving_a_stream_ends_the_generation(weights: Path) -> None:
    async def leave() -> None:
        model = LocalModel(weights)
        stream = model.stream(user("Count from 1 to 500 in words."))
        async for item in stream:
            assert isinstance(item, Delta)
            break
        await stream.aclose()  # type: ignore[attr-defined]
        response = await asyncio.wait_for(model.complete(user("Hi"), settings=ModelSettings(max_tokens=1)), 20)
        assert response.content

    asyncio.run(leave())


def test_two_turns_at_once_share_the_loaded_file(weights: Path) -> None:
    async def both() -> list[ChatResponse]:
        settings = ModelSettings(max_tokens=4)
        return await asyncio.gather(
            *(LocalModel(weights).complete(user(f"Say {word}."), settings=settings) for word in ("yes", "no"))
        )

    assert all(response.content for response in asyncio.run(both()))


def test_a_grammar_that_can_not_be_used_is_not_a_crash(weights: Path) -> None:
    settings = ModelSettings(max_tokens=4, extra={"grammar": "%llguidance {}\nstart: ("})
    model = LocalModel(weights)
    try:
        response = asyncio.run(model.complete(user("Hi"), settings=settings))
    except ModelError:
        return
    assert response.content


def test_a_file_that_is_no_gguf_is_refused_with_one_sentence(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"nothing")
    with pytest.raises(WeightsError, match="not a GGUF file"):
        local_model(bad)


def test_a_damaged_gguf_is_a_model_that_can_not_be_loaded(tmp_path: Path, weights: Path) -> None:
    bad = tmp_path / "damaged.gguf"
    with weights.open("rb") as whole:
        bad.write_bytes(whole.read(100_000))
    with pytest.raises(ModelUnavailableError, match=r"damaged\.gguf can not be loaded"):
        asyncio.run(local_model(bad).complete(user("Hi")))


def test_any_gguf_by_path_works(tmp_path: Path, weights: Path) -> None:
    link = tmp_path / "mine.gguf"
    os.symlink(weights, link)
    response = asyncio.run(local_model(link).complete(user("Hi"), settings=ModelSettings(max_tokens=3)))
    assert response.content


def test_openmp_is_told_to_wait_passively_and_the_port_has_a_key(weights: Path) -> None:
    code = (
        "import asyncio, os, urllib.request, urllib.error\n"
        "from toolturn.local import runtime\n"
        "from toolturn import ChatMessage, ModelSettings\n"
        "from pathlib import Path\n"
        f"path = Path({str(weights)!r})\n"
        "model = runtime.LocalModel(path)\n"
        "asyncio.run(model.load())\n"
        "assert os.environ['OMP_WAIT_POLICY'] == 'passive'\n"
        "(loaded,) = runtime._loaded.values()\n"
        "address = loaded._server.listening_address\n"
        "try:\n"
        "    urllib.request.urlopen(f'{address}/v1/models/../props', timeout=20)\n"
        "except urllib.error.HTTPError as exc:\n"
        "    print(exc.code)\n"
    )
    env = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == "401", done.stderr


def test_a_process_that_ends_while_a_reply_is_made_ends_cleanly(weights: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from toolturn import ChatMessage\n"
        "from toolturn.local.runtime import LocalModel\n"
        "async def main():\n"
        f"    stream = LocalModel(Path({str(weights)!r})).stream((ChatMessage('user', 'Count to 500 in words.'),))\n"
        "    async for item in stream:\n"
        "        break\n"
        "    sys.exit(7)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 7, done.stderr
