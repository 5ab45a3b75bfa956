"""A GGUF file in process, through xllamacpp: text in, text out, cancelled between two tokens."""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from ..content import as_text
from ..errors import ModelContextError, ModelError, ModelRequestError, ModelUnavailableError
from ..messages import ChatMessage, ChatResponse, ToolDef, Usage
from ..model import Capabilities, ChatModel, Delta, ModelSettings, StreamItem
from .prompts import PromptStates
from .weights import cache_folder

MAX_TOKENS = 2048
_MAX_THREADS = 8
_EXIT_SECONDS = 5.0
# Tokens of a prompt that are read before a cancel is heard. The library computes this many at once anyway; with fewer
# reading takes a fifth longer, or more.
_BATCH = 512


class _Generation:
    """One request to the runtime in a thread of its own."""

    def __init__(self) -> None:
        self.cancelled = False
        self.ended = threading.Event()


class _Runtime:
    """One loaded file; requests queue inside it."""

    def __init__(self, path: Path, context: int, threads: int) -> None:
        # OpenMP threads spin while they wait unless they are told not to before the library is loaded; where
        # another process holds a core, spinning is ten times slower.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            import xllamacpp
        except ImportError:
            raise ImportError("the embedded model needs the extra 'local': pip install 'toolturn[local]'") from None
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_parallel = 1
        params.n_batch = _BATCH
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.warmup = False
        params.verbosity = 0
        # The library opens an HTTP port on loopback that nobody here uses: it gets a key that nobody knows.
        key = secrets.token_hex(32)
        params.api_keys = [key]
        params.ui = False
        folder = cache_folder() / "prompts"
        params.slot_save_path = f"{folder}{os.sep}"
        self._server = xllamacpp.Server(params)
        stat = path.stat()
        identity = f"{path} {stat.st_size} {stat.st_mtime_ns} {context} {xllamacpp.__version__}"
        self._states = PromptStates(folder, identity, self._server.listening_address, key, self._read)

    def _read(self, message: dict[str, Any]) -> None:
        self._server.handle_chat_completions({"messages": [message], "max_tokens": 1, "cache_prompt": True})

    def generate(self, request: dict[str, Any], on_chunk: Callable[[dict[str, Any]], bool]) -> None:
        """Run a request to its end; ``on_chunk`` returns True to cancel it."""
        self._states.prepare(request["messages"])
        answer = self._server.handle_chat_completions(request, on_chunk)
        if answer is not None:
            on_chunk(answer)


_loaded: dict[tuple[Path, int, int], _Runtime] = {}
_loading = threading.Lock()
_running: set[_Generation] = set()


def _runtime(path: Path, context: int, threads: int) -> _Runtime:
    with _loading:
        key = (path, context, threads)
        if key not in _loaded:
            try:
                _loaded[key] = _Runtime(path, context, threads)
            except ImportError:
                raise
            except Exception as exc:
                raise ModelUnavailableError(f"the model {path.name} can not be loaded: {exc}") from exc
        return _loaded[key]


@atexit.register
def _stop() -> None:
    """End what still runs: the interpreter must not be torn down below the library's feet."""
    for generation in tuple(_running):
        generation.cancelled = True
    for generation in tuple(_running):
        generation.ended.wait(_EXIT_SECONDS)


class LocalModel(ChatModel):
    """A GGUF file as a model of text; ``GrammarTools`` makes it call tools.

    Args:
        path: The file; it must hold a chat template.
        context: Tokens of the window.
        threads: Processor threads to compute with; as many as there are, 8 at most, where None.
        settings: How it replies unless a request says otherwise.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int = 8192,
        threads: int | None = None,
        settings: ModelSettings | None = None,
    ) -> None:
        self._path = path.resolve()
        self._context = context
        self._threads = threads or min(_processors(), _MAX_THREADS)
        self._settings = settings or ModelSettings(temperature=0.0)

    @property
    def capabilities(self) -> Capabilities:
        """It streams, takes an llguidance grammar in ``settings.extra["grammar"]``, and knows its window."""
        return Capabilities(streaming=True, grammar=True, window=self._context)

    def __repr__(self) -> str:
        return f"<LocalModel {self._path.name}>"

    async def load(self) -> None:
        """Load the file now instead of at the first request.

        Raises:
            ModelUnavailableError: It can not be loaded.
        """
        await asyncio.to_thread(_runtime, self._path, self._context, self._threads)

    async def complete(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> ChatResponse:
        """Return the reply; tools are for a dialect and are not looked at here.

        Raises:
            ModelError: The file can not be loaded, the messages do not fit, or the request is refused.
        """
        response: ChatResponse | None = None
        async for item in self.stream(messages, tools, settings=settings):
            if isinstance(item, ChatResponse):
                response = item
        assert response is not None
        return response

    async def stream(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolDef, ...] = (),
        *,
        settings: ModelSettings | None = None,
    ) -> AsyncIterator[StreamItem]:
        """Yield the reply token by token, then the whole.

        Closing the stream ends the generation at the next token, and the reading of a prompt after at most 512 more.

        Raises:
            ModelError: The file can not be loaded, the messages do not fit, or the request is refused.
        """
        await self.load()
        runtime = _runtime(self._path, self._context, self._threads)
        request = self._request(messages, settings)
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Any] | BaseException | None] = asyncio.Queue()
        generation = _Generation()

        def tell(item: dict[str, Any] | BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(queue.put_nowait, item)
            except RuntimeError:  # the loop is closed: nobody listens any more
                generation.cancelled = True

        def on_chunk(chunk: dict[str, Any]) -> bool:
            if not generation.cancelled:
                tell(chunk)
            return generation.cancelled

        def work() -> None:
            try:
                runtime.generate(request, on_chunk)
            except BaseException as exc:  # noqa: BLE001 - told to whoever waits
                tell(exc)
            finally:
                _running.discard(generation)
                generation.ended.set()
                tell(None)

        _running.add(generation)
        threading.Thread(target=work, name="toolturn-local", daemon=True).start()
        pieces: list[str] = []
        finish: str | None = None
        last: Mapping[str, Any] = {}
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, BaseException):
                    raise ModelRequestError(f"the model refused the request: {item}") from item
                if "error" in item:
                    raise _failure(item["error"])
                last = item
                for choice in item.get("choices") or ():
                    finish = choice.get("finish_reason") or finish
                    if text := choice.get("delta", {}).get("content"):
                        pieces.append(text)
                        yield Delta(text)
        finally:
            generation.cancelled = True
        yield ChatResponse("".join(pieces), None, None, finish or "stop", None, _usage(last))

    def _request(self, messages: tuple[ChatMessage, ...], settings: ModelSettings | None) -> dict[str, Any]:
        given = self._settings if settings is None else settings.over(self._settings)
        request: dict[str, Any] = {
            "messages": [{"role": message.role, "content": _sendable(message)} for message in messages],
            "max_tokens": given.max_tokens or MAX_TOKENS,
            "stream": True,
            "cache_prompt": True,
            "return_progress": True,  # so that there is something to cancel while the prompt is read
        }
        if given.temperature is not None:
            request["temperature"] = given.temperature
        if given.stop:
            request["stop"] = list(given.stop)
        if given.seed is not None:
            request["seed"] = given.seed
        return {**request, **given.extra}


def _sendable(message: ChatMessage) -> str:
    # half a surrogate pair has no form in what the library is sent
    return as_text(message.content).encode("utf-8", "replace").decode()


def _processors() -> int:
    # those this process may use, where the system tells
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _usage(chunk: Mapping[str, Any]) -> Usage | None:
    timings = chunk.get("timings")
    if not timings:
        return None
    cached = timings.get("cache_n", 0)
    return Usage(cached + timings.get("prompt_n", 0), timings.get("predicted_n", 0), cached)


def _failure(error: Any) -> ModelError:
    message = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    if isinstance(error, dict) and error.get("type") == "exceed_context_size_error":
        tokens, window = error.get("n_prompt_tokens"), error.get("n_ctx")
        return ModelContextError(f"the messages need {tokens} tokens, the model's window has {window}")
    return ModelRequestError(f"the model refused the request: {message}")
