"""One transport serves every event loop, thread and process that uses it, and leaves without a trace."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from toolturn.models.transport import Transport
from toolturn.models.transports import default_transport
from toolturn.models.transports.loops import PerLoop

from .raw_server import SECONDS, Peer, answering, run, serving, serving_in_a_thread
from .three_transports import Make, every_transport, ours, post, whole


def program(text: str, *arguments: object, options: tuple[str, ...] = ("-X", "dev", "-W", "error")) -> str:
    """Run a program and return what it printed; whatever it says on stderr is a failure."""
    done = subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(text), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS * 3,
    )
    # in development mode asyncio tells of callbacks that were slow
    told = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
    assert (told, done.returncode) == ([], 0)
    return done.stdout


ASK = """
    import asyncio, sys
    from toolturn.models.transport import HttpRequest, Timeouts
    from toolturn.models.transports import default_transport
    from toolturn.models.transports.asyncio_http import AsyncioTransport
    from toolturn.models.transports.httpx2 import Httpx2Transport

    url, which = sys.argv[1:3]
    transport = {"asyncio": default_transport, "httpx2": Httpx2Transport}[which]()

    async def ask():
        async with transport.send(HttpRequest("POST", url, {}, b"x"), Timeouts()) as reply:
            return await reply.read()
"""


@every_transport
def test_each_event_loop_has_its_own_connections_and_closes_them_when_it_ends(make: Make) -> None:
    async def script(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.reply()
        peer.tell_that_it_left()

    transport = make()

    async def twice(url: str) -> None:
        for _ in range(2):
            assert await whole(transport, post(url)) == b"ok"

    with serving_in_a_thread(script) as server:
        for number in range(1, 4):
            asyncio.run(twice(server.url))
            assert server.connections == number
            server.wait_until_one_left()


@every_transport
def test_event_loops_in_two_threads_use_one_transport_at_once(make: Make) -> None:
    transport = make()
    failures: list[BaseException] = []

    async def many(url: str) -> None:
        for _ in range(10):
            replies = await asyncio.gather(*(whole(transport, post(url)) for _ in range(5)))
            assert replies == [b"ok"] * 5

    def thread(url: str) -> None:
        try:
            asyncio.run(many(url))
        except BaseException as exc:
            failures.append(exc)

    with serving_in_a_thread(answering) as server:
        threads = [threading.Thread(target=thread, args=(server.url,)) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(SECONDS)
        assert failures == []
        assert len(server.requests) == 150


def test_the_default_is_one_transport_for_the_process() -> None:
    assert default_transport() is default_transport()


def test_closing_a_transport_closes_its_connections_in_other_threads_too() -> None:
    closed: list[str] = []

    async def close(name: str) -> None:
        closed.append(name)

    names = PerLoop(lambda: threading.current_thread().name, close)
    inside, done = threading.Event(), threading.Event()

    async def other() -> None:
        names.get()
        inside.set()
        await asyncio.to_thread(done.wait, SECONDS)

    async def main() -> None:
        own = names.get()
        thread = threading.Thread(target=lambda: asyncio.run(other()), name="other")
        thread.start()
        assert await asyncio.to_thread(inside.wait, SECONDS)
        await names.aclose()
        done.set()
        await asyncio.to_thread(thread.join, SECONDS)
        assert sorted(closed) == sorted([own, "other"])
        assert names.get() == own

    run(main())


@ours
def test_a_transport_can_be_used_again_after_it_was_closed(make: Make) -> None:
    async def main() -> None:
        async with serving(answering) as server:
            transport: Transport = make()
            for _ in range(2):
                assert await whole(transport, post(server.url)) == b"ok"
                await transport.aclose()
            assert server.connections == 2

    run(main())


@pytest.mark.parametrize("which", ["asyncio", "httpx2"])
def test_a_program_that_runs_several_event_loops_ends_without_a_warning(which: str) -> None:
    text = f"{ASK}\n    for _ in range(3):\n        print(asyncio.run(ask()))"
    with serving_in_a_thread(answering) as server:
        assert program(text, server.url, which) == "b'ok'\n" * 3
        assert server.connections == 3


@pytest.mark.parametrize("which", ["asyncio", "httpx2"])
def test_synchronous_turns_share_their_connection_and_end_without_a_warning(which: str) -> None:
    text = f"""{ASK}
    from toolturn import ChatMessage, ChatResponse, run_tool_loop_sync

    async def model(messages, tools):
        return ChatResponse(content=(await ask()).decode())

    for _ in range(3):
        print(run_tool_loop_sync([ChatMessage("user", "hello")], [], model).content)
    """
    with serving_in_a_thread(answering) as server:
        assert program(text, server.url, which) == "ok\n" * 3
        assert server.connections == 1


def test_uvloop_is_an_event_loop_like_another() -> None:
    pytest.importorskip("uvloop")
    text = f"""{ASK}
    import uvloop

    async def several():
        return b"".join([*await asyncio.gather(*(ask() for _ in range(5))), await ask()])

    print(uvloop.run(several()))
    """
    with serving_in_a_thread(answering) as server:
        assert program(text, server.url, "asyncio") == "b'okokokokokok'\n"
        assert server.connections == 5


@pytest.mark.parametrize("which", ["asyncio", "httpx2"])
def test_a_request_under_way_does_not_hold_up_the_end_of_the_program(which: str) -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    text = f"""{ASK}
    async def main():
        task = asyncio.create_task(ask())
        await asyncio.sleep(0.2)
        print("leaving")

    asyncio.run(main())
    """
    with serving_in_a_thread(silent) as server:
        assert program(text, server.url, which) == "leaving\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("which", ["asyncio", "httpx2"])
def test_a_forked_child_uses_the_transport_of_its_parent_with_connections_of_its_own(which: str) -> None:
    text = f"""{ASK}
    import os

    async def parent():
        print(await ask(), flush=True)
        child = os.fork()
        if child == 0:
            return "child"
        await asyncio.to_thread(os.waitpid, child, 0)
        print(await ask(), flush=True)
        return "parent"

    loop = asyncio.new_event_loop()
    if loop.run_until_complete(parent()) == "child":
        # the loop of the parent is not for the child, as with anything of asyncio
        asyncio.events._set_running_loop(None)
        print(asyncio.run(ask()), flush=True)
        os._exit(0)
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    """
    with serving_in_a_thread(answering) as server:
        assert program(text, server.url, which) == "b'ok'\n" * 3
        assert server.connections == 2


def test_import_toolturn_loads_no_transport() -> None:
    text = """
    import sys
    import toolturn
    print([name for name in ("ssl", "httptools", "httpx2", "toolturn.models", "urllib.request") if name in sys.modules])
    """
    loaded = program(text, options=())
    # asyncio itself loads ssl
    assert loaded in ("[]\n", "['ssl']\n")


def test_the_default_transport_loads_neither_httpx2_nor_the_proxies_of_the_system() -> None:
    text = f"""{ASK}
    print(asyncio.run(ask()))
    print([name for name in ("httpx2", "h11", "anyio", "truststore", "urllib.request") if name in sys.modules])
    """
    with serving_in_a_thread(answering) as server:
        assert program(text, server.url, "asyncio") == "b'ok'\n[]\n"


MISSING = """
    import sys
    for name in sys.argv[1:]:
        sys.modules[name] = None
    from toolturn.models.transports import default_transport
    from toolturn.models.transports.httpx2 import Httpx2Transport
    for make in (default_transport, Httpx2Transport):
        try:
            print(type(make()).__name__)
        except ImportError as exc:
            print(exc)
"""


def test_a_missing_library_is_told_with_the_command_that_installs_it() -> None:
    assert program(MISSING, "httptools", "httpx2").splitlines() == [
        "models behind HTTP need the extra 'http': pip install 'toolturn[http]'",
        "this transport needs the library httpx2: pip install httpx2",
    ]


def test_where_only_httpx2_is_installed_it_is_used() -> None:
    assert program(MISSING, "httptools").splitlines() == ["Httpx2Transport"] * 2
