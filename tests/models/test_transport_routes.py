"""Trust as the system trusts, proxies as the environment says, and no secret in an error."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import traceback
from pathlib import Path

import pytest
import trustme

from toolturn.errors import ModelError, ModelUnavailableError
from toolturn.models.transports.address import address_of
from toolturn.models.transports.proxies import proxy_for

from .raw_server import Peer, answering, run, serving
from .test_transport_faults import unused_port
from .three_transports import HIDDEN, KEY, QUICK, Make, every_transport, ours, post, whole


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("SSL_CERT"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """The authority, which the environment names."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return authority


def certified(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def secretless(error: ModelError) -> str:
    shown = "".join(traceback.format_exception(error))
    assert KEY not in shown
    assert HIDDEN not in shown
    assert "\n" not in str(error)
    return str(error)


@every_transport
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_an_authority_that_the_environment_names_is_trusted(make: Make, host: str, trusted: trustme.CA) -> None:
    async def main() -> None:
        async with serving(answering, certified(trusted, "localhost", "127.0.0.1")) as server:
            transport = make()
            for _ in range(2):
                assert await whole(transport, post(f"https://{host}:{server.port}/v1")) == b"ok"
            assert server.connections == 1
            await transport.aclose()

    run(main())


@every_transport
def test_a_certificate_that_is_not_trusted_is_told_with_what_to_do(make: Make, authority: trustme.CA) -> None:
    async def main() -> None:
        async with serving(answering, certified(authority, "localhost")) as server:
            transport = make()
            with pytest.raises(ModelUnavailableError) as caught:
                await whole(transport, post(f"https://localhost:{server.port}/v1?key={HIDDEN}"))
            text = secretless(caught.value)
            assert f"the certificate of localhost:{server.port} is not trusted" in text
            assert "SSL_CERT_FILE" in text
            assert server.requests == []
            await transport.aclose()

    run(main())


@every_transport
def test_a_certificate_of_another_host_is_not_trusted(make: Make, trusted: trustme.CA) -> None:
    async def main() -> None:
        async with serving(answering, certified(trusted, "other.example")) as server:
            transport = make()
            with pytest.raises(ModelUnavailableError, match="is not trusted"):
                await whole(transport, post(f"https://localhost:{server.port}/v1"))
            assert server.requests == []
            await transport.aclose()

    run(main())


@every_transport
def test_https_at_a_port_of_http_is_told_as_that(make: Make, trusted: trustme.CA) -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.read(100)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    async def main() -> None:
        async with serving(script) as server:
            transport = make()
            with pytest.raises(ModelUnavailableError, match=r"does not speak HTTP/1\.1 over TLS: is it http://"):
                await whole(transport, post(f"https://localhost:{server.port}/v1"))
            await transport.aclose()

    run(main())


@every_transport
def test_a_server_of_http_2_alone_is_a_typed_error(make: Make, trusted: trustme.CA) -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.read(100)
        await peer.send(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\x00\x00")

    async def main() -> None:
        context = certified(trusted, "localhost")
        context.set_alpn_protocols(["h2"])
        async with serving(script, context) as server:
            transport = make()
            with pytest.raises(ModelError) as caught:
                await whole(transport, post(f"https://localhost:{server.port}/v1"))
            assert f"localhost:{server.port}" in secretless(caught.value)
            await transport.aclose()

    run(main())


@ours
@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_a_plain_request_goes_through_the_proxy(make: Make, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(answering) as proxy:
            monkeypatch.setenv(variable, f"http://me:{HIDDEN}%21@127.0.0.1:{proxy.port}")
            transport = make()
            for _ in range(2):
                assert await whole(transport, post("http://models.example/v1/chat?a=b")) == b"ok"
            assert proxy.requests[1].line == "POST http://models.example/v1/chat?a=b HTTP/1.1"
            assert proxy.requests[1].headers["host"] == "models.example"
            credentials = base64.b64decode(proxy.requests[1].headers["proxy-authorization"].split()[1])
            assert credentials == f"me:{HIDDEN}!".encode()
            assert proxy.connections == 1
            await transport.aclose()

    run(main())


async def _tunnel_to(peer: Peer, port: int) -> None:
    """Be a proxy that connects every tunnel with one port of this machine."""
    request = await peer.request()
    assert request is not None
    assert request.line == f"CONNECT models.example:{port} HTTP/1.1"
    assert "authorization" not in request.headers
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def pump(source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                drain.write(data)
                await drain.drain()
        except ConnectionError:
            pass
        finally:
            drain.close()

    await asyncio.gather(pump(peer.reader, writer), pump(reader, peer.writer))


@ours
@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY"])
def test_a_secure_request_goes_through_a_tunnel_of_the_proxy(
    make: Make, variable: str, trusted: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with serving(answering, certified(trusted, "models.example")) as server:

            async def script(peer: Peer) -> None:
                await _tunnel_to(peer, server.port)

            async with serving(script) as proxy:
                monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
                transport = make()
                for _ in range(2):
                    assert await whole(transport, post(f"https://models.example:{server.port}/v1")) == b"ok"
                assert len(server.requests) == 2
                assert proxy.connections == 1
                await transport.aclose()

    run(main())


@ours
def test_the_other_sides_certificate_counts_inside_a_tunnel(
    make: Make, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with serving(answering, certified(authority, "models.example")) as server:

            async def script(peer: Peer) -> None:
                await _tunnel_to(peer, server.port)

            async with serving(script) as proxy:
                monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
                transport = make()
                with pytest.raises(ModelUnavailableError, match="is not trusted"):
                    await whole(transport, post(f"https://models.example:{server.port}/v1"))
                await transport.aclose()

    run(main())


@ours
@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n", b""])
def test_a_proxy_that_makes_no_tunnel_is_told_by_the_name_of_its_variable(
    make: Make, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer)

    async def main() -> None:
        async with serving(script) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:{HIDDEN}@127.0.0.1:{proxy.port}")
            transport = make()
            with pytest.raises(ModelError) as caught:
                await whole(transport, post("https://models.example/v1"))
            text = secretless(caught.value)
            assert "models.example:443" in text
            if answer:
                assert "the proxy that HTTPS_PROXY names" in text
                assert "407" in text
            await transport.aclose()

    run(main())


@ours
def test_a_proxy_that_is_not_there_is_told_by_the_name_of_its_variable(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setenv("http_proxy", f"http://me:{HIDDEN}@127.0.0.1:{unused_port()}")
        transport = make()
        with pytest.raises(ModelUnavailableError) as caught:
            await whole(transport, post("http://models.example/v1"))
        assert "http_proxy" in secretless(caught.value)
        await transport.aclose()

    run(main())


@ours
@pytest.mark.parametrize("value", ["gopher://127.0.0.1:1", "http://", "http://[::1", "http://127.0.0.1:port"])
def test_a_proxy_that_is_none_is_told_by_the_name_of_its_variable(
    make: Make, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setenv("HTTP_PROXY", value)
        transport = make()
        with pytest.raises(ModelUnavailableError) as caught:
            await whole(transport, post("http://models.example/v1"))
        assert "HTTP_PROXY" in secretless(caught.value)
        await transport.aclose()

    run(main())


@ours
@pytest.mark.parametrize("no_proxy", [None, "127.0.0.1,localhost"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_is_never_asked_through_a_proxy(
    make: Make, host: str, no_proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_port()}")
        if no_proxy is not None:
            monkeypatch.setenv("NO_PROXY", no_proxy)
        async with serving(answering) as server:
            transport = make()
            assert await whole(transport, post(f"http://{host}:{server.port}/v1"), QUICK) == b"ok"
            await transport.aclose()

    run(main())


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize(
    ("value", "without"),
    [
        ("example.com", True),
        (".example.com", True),
        ("other.org, api.example.com", True),
        ("api.example.com:8443", True),
        ("*", True),
        ("api.example.com:443", False),
        ("other.org", False),
        ("", False),
    ],
)
def test_no_proxy_names_hosts_domains_and_ports(
    name: str, value: str, without: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv(name, value)
    proxy = proxy_for(address_of("https://api.example.com:8443/v1"))
    assert (proxy is None) == without
    if proxy is not None:
        assert (proxy.url, proxy.named_by) == ("http://proxy.example:3128", "HTTPS_PROXY")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:8080", True),
        ("http://127.3.2.1", True),
        ("http://[::1]:8080/", True),
        ("http://0.0.0.0:8080/", True),
        ("http://ollama.localhost", True),
        ("http://localhost.example", False),
        ("http://192.168.1.5:11434", False),
        ("https://api.example.com", False),
    ],
)
def test_this_machine_is_known_by_its_addresses(url: str, local: bool) -> None:
    assert address_of(url).local == local


def test_an_address_is_taken_apart() -> None:
    address = address_of("https://M\xfcller.example/v1/a b?q=\xfc&r=%20#part".replace(" ", "%20"))
    assert (address.secure, address.host, address.port) == (True, "xn--mller-kva.example", 443)
    assert address.target == "/v1/a%20b?q=%C3%BC&r=%20"
    assert address_of("http://[2001:db8::1]").place == "[2001:db8::1]:80"
