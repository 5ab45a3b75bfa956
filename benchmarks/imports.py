"""What importing costs, what it loads, and what it builds."""

from __future__ import annotations

import json
from typing import Any

from process import Adapter

MEMORY = """
try:
    print([int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")][0])
except OSError:
    print(0)
"""

INVENTORY = r"""
import json, os, sysconfig
from importlib import metadata
found = {}
for dist in metadata.distributions(path=[sysconfig.get_path("purelib")]):
    name = dist.metadata["Name"]
    if name.lower() in ("pip", "setuptools", "wheel"):
        continue
    size = 0
    for file in dist.files or ():
        try:
            size += os.path.getsize(dist.locate_file(file))
        except OSError:
            pass
    found[name.lower().replace("_", "-").replace(".", "-")] = [dist.version, size]
print(json.dumps(found))
"""

HTTP_CLIENTS = (
    "aiohttp",
    "curl_cffi",
    "http.client",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "niquests",
    "openai",
    "pycurl",
    "pyreqwest",
    "requests",
    "tornado",
    "urllib.request",
    "urllib3",
    "websockets",
)
HEAVY = ("click", "jsonschema_rs", "numpy", "pint", "simpleeval", "xllamacpp")

CHECK = """
import json, sys
from pydantic import BaseModel, TypeAdapter

built = []
new, init = type(BaseModel).__new__, TypeAdapter.__init__

def counted_new(metaclass, name, *args, **options):
    built.append("model " + name)
    return new(metaclass, name, *args, **options)

def counted_init(self, *args, **options):
    built.append("adapter of %r" % (args[:1],))
    init(self, *args, **options)

type(BaseModel).__new__, TypeAdapter.__init__ = counted_new, counted_init

class Probe(BaseModel):
    pass

TypeAdapter(int)
assert len(built) == 2, "the count does not work with this pydantic"
built.clear()
before = set(sys.modules)
IMPORTS
print(json.dumps({"built": built, "modules": sorted(set(sys.modules) - before)}))
"""


def cost(adapter: Adapter, number: int) -> dict[str, Any]:
    """Measure an import against a bare interpreter once: CPU seconds and memory.

    Args:
        adapter: Whose import.
        number: The round, which seeds the hashes.
    """
    bare, before, _ = adapter.python_c("pass" + MEMORY, seed=number)
    full, after, _ = adapter.python_c(adapter.imports + MEMORY, seed=number)
    memory = (int(after.split()[-1]) - int(before.split()[-1])) / 1024
    return {"bare_cpu": bare, "cpu": full - bare, "memory_mb": memory}


def describe(adapter: Adapter) -> dict[str, Any]:
    """Return how many modules an import loads, and what is installed beside it."""
    found = json.loads(adapter.python_c(INVENTORY)[1])
    return {
        "modules": int(adapter.python_c(f"import sys\n{adapter.imports}\nprint(len(sys.modules))")[1]),
        "distributions": found,
        "versions": {name: found[name][0] for name in adapter.constants.get("DISTS", ()) if name in found},
    }


def check(adapter: Adapter) -> list[str]:
    """Return what an import did that it should not do; nothing when all is well."""
    code = CHECK.replace("IMPORTS", adapter.imports)
    try:
        found = json.loads(adapter.python_c(code)[1])
    except RuntimeError as exc:
        return [f"fails: {str(exc).splitlines()[-1]}"]
    unwanted = [f"loads {name}" for name in (*HTTP_CLIENTS, *HEAVY) if name in found["modules"]]
    return unwanted + [f"builds {what}" for what in found["built"]]
