"""What servers get wrong in a reply, mended before the client judges it as a whole.

One tool or one piece of content that is not as the protocol wants must not cost all the others, and what a call gave
must not be lost because its form is odd: the call has run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import ContentBlock, RequestId
from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from pydantic import TypeAdapter, ValidationError

_content: TypeAdapter[Any] = TypeAdapter(ContentBlock)


class Dispatcher(JSONRPCDispatcher[TransportContext]):
    """The client's own dispatcher, which also tells when the connection has ended.

    Args:
        read_stream: From the server.
        write_stream: To the server.
        ended: Is called once when nothing more will come.
    """

    def __init__(self, read_stream: Any, write_stream: Any, ended: Callable[[], None]) -> None:
        super().__init__(read_stream, write_stream)
        self._tell = ended
        self.left_out: list[str] = []

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Receive until the connection ends."""
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._tell()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result, mended."""
        raw = await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        if method == "tools/call":
            return mended_result(raw)
        if method == "tools/list":
            return mended_page(raw, self.left_out)
        return raw


def mended_result(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call in the form that the protocol gives it.

    Args:
        raw: What the server sent.
    """
    if raw.get("resultType", "complete") != "complete":
        return raw
    content = raw.get("content")
    if isinstance(content, (str, dict)):
        content = [content]
    items = [_item(item) for item in content] if isinstance(content, list) else []
    failed = raw.get("isError") in (True, "true", "True")
    structured = raw.get("structuredContent")
    if content is None and structured is None and (strange := raw.keys() - {"isError", "_meta", "resultType"}):
        failed = failed or "task" in strange
        items = [_text(f"[a result without content, only {', '.join(sorted(strange))[:200]}]")]
    # the newest protocol wants a type; the client leaves it out where an older one is spoken
    mended: dict[str, Any] = {"content": items, "isError": failed, "resultType": "complete"}
    if isinstance(structured, dict):
        mended["structuredContent"] = structured
    elif structured is not None and not items:
        items.append(_text(json.dumps(structured, ensure_ascii=False, separators=(",", ":"))))
    return mended


def _item(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return _text(item)
    if isinstance(item, dict) and isinstance(item.get("type"), str):
        plain = {key: value for key, value in item.items() if key not in ("annotations", "_meta", "icons")}
        try:
            _content.validate_python(plain, by_name=False)
        except ValidationError:
            size = len(json.dumps(plain))
            return _text(f"[content of an unknown form, type {item['type'][:50]!r}, {size} bytes of JSON]")
        return plain
    return _text(f"[content of an unknown form, {len(json.dumps(item))} bytes of JSON]")


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# the newest protocol wants these; the client leaves them out where an older one is spoken
_OF_THE_NEWEST = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_VERSIONS = (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION)
_HINTS = ("readOnlyHint", "idempotentHint", "destructiveHint", "openWorldHint")


def mended_page(raw: dict[str, Any], left_out: list[str]) -> dict[str, Any]:
    """Return a page of tools in the form that the protocol gives it.

    Args:
        raw: What the server sent.
        left_out: Is told, in a sentence each, of tools that can not be used.
    """
    listed = raw.get("tools")
    tools = []
    for number, tool in enumerate(listed if isinstance(listed, list) else [], 1):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name.strip():
            left_out.append(f"entry {number} of its list has no name")
            continue
        schema = tool.get("inputSchema")
        if schema is not None and not isinstance(schema, dict):
            left_out.append(f"the schema of its tool {name[:100]!r} is no object")
            continue
        kind = (schema or {}).get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind) and kind is not None:
            left_out.append(f"the schema of its tool {name[:100]!r} is not that of an object")
            continue
        made = _tool(tool, name, schema or {})
        try:
            for version in _VERSIONS:
                validate_server_result("tools/list", version, {"tools": [made], **_OF_THE_NEWEST})
        except ValidationError as exc:
            place = ".".join(str(step) for step in exc.errors()[0]["loc"][2:])[:100]
            left_out.append(f"its tool {name[:100]!r} is not as the protocol wants it ({place})")
            continue
        tools.append(made)
    page: dict[str, Any] = {"tools": tools}
    cursor = raw.get("nextCursor")
    if isinstance(cursor, (str, int)) and not isinstance(cursor, bool) and cursor != "":
        page["nextCursor"] = str(cursor)
    return page | _OF_THE_NEWEST


def _tool(tool: dict[str, Any], name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The parts of a tool that are used here, each only where it has its form."""
    made: dict[str, Any] = {"name": name, "inputSchema": {**schema, "type": "object"}}
    for key in ("title", "description"):
        if isinstance(tool.get(key), str):
            made[key] = tool[key]
    output = tool.get("outputSchema")
    if isinstance(output, dict) and output.get("type", "object") == "object":
        made["outputSchema"] = {**output, "type": "object"}
    hints = tool.get("annotations")
    if isinstance(hints, dict):
        made["annotations"] = {key: hints[key] for key in _HINTS if isinstance(hints.get(key), bool)}
        if isinstance(hints.get("title"), str):
            made["annotations"]["title"] = hints["title"]
    execution = tool.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    if support in ("forbidden", "optional", "required"):
        made["execution"] = {"taskSupport": support}
    return made
