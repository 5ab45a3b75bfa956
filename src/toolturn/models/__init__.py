"""Models behind a wire: transports, what goes out, what comes in, and wrappers that are models themselves."""

from .ingest import ingest, normalized, seen_ids
from .named import model_named

__all__ = ["ingest", "model_named", "normalized", "seen_ids"]
