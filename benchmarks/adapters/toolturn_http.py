"""The package under test as it is imported for a model behind HTTP."""

from __future__ import annotations

HERE = True
DISTS = ["toolturn", "httptools"]
IMPORTS = """
from toolturn.models import model_named
from toolturn.models.transports import default_transport
default_transport()
model_named("http://127.0.0.1:9/v1#model")
"""
SKIP_LOADS = ["w1", "w3", "w5", "events", "w2", "w3http"]
