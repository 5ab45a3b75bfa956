"""What comes in from a model is mended here, once: strict inside, liberal at the edge."""

from .callback import normalized
from .ids import seen_ids
from .response import ingest

__all__ = ["ingest", "normalized", "seen_ids"]
