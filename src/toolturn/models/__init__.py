"""Models behind a wire: transports, what goes out, what comes in, and wrappers that are models themselves."""

from .ingest import ingest, normalized, seen_ids

__all__ = ["ingest", "normalized", "seen_ids"]
