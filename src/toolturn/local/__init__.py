"""The embedded model: a GGUF file run in process, which calls tools by the grammar dialect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..dialects.grammar import GrammarTools
from ..model import ModelSettings
from .weights import DEFAULT, WeightsError, find

if TYPE_CHECKING:
    from ..model import ChatModel

__all__ = ["DEFAULT", "WeightsError", "local_model"]

# Below this size a model repeats its call instead of reading the result, unless the tools are out of sight.
_SMALL = 2_000_000_000


def local_model(
    name_or_path: str | Path | None = None,
    *,
    context: int = 8192,
    threads: int | None = None,
    settings: ModelSettings | None = None,
) -> ChatModel:
    """Return a model that runs in this process and calls tools.

    It is loaded at the first request, once per file, and shared by all that use the same file.

    Args:
        name_or_path: A name that ``toolturn model list`` shows, or the path of any GGUF file with a chat template;
            the default weights where None.
        context: Tokens of the window.
        threads: Processor threads to compute with; as many as there are, 8 at most, where None.
        settings: How it replies unless a request says otherwise; temperature 0 where None.

    Raises:
        WeightsError: The file is not here; the text says how to get it.
        ImportError: The extra ``local`` is not installed.
    """
    from .runtime import LocalModel

    path = find(None if name_or_path is None else str(name_or_path))
    model = LocalModel(path, context=context, threads=threads, settings=settings)
    return GrammarTools(model, withdraw=path.stat().st_size < _SMALL)
