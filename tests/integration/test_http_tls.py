"""The HTTP transport over TLS: the same promises on an encrypted connection."""

import datetime
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ackbox.tool_adapters.contract import Phase
from ackbox.tool_adapters.shell.http_transport import HttpTransport

from .raw_server import Script, raw_server, read_request
from .sending import OK, exchanged, send


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fake provider")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def over_tls(certificate: tuple[Path, Path]) -> Callable[[Script], Script]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def wrap(script: Script) -> Script:
        def play(connection: socket.socket, over: threading.Event) -> None:
            with context.wrap_socket(connection, server_side=True) as encrypted:
                script(encrypted, over)

        return play

    return wrap


@pytest.fixture
def transport(certificate: tuple[Path, Path]) -> Iterator[HttpTransport]:
    client = HttpTransport(verify=ssl.create_default_context(cafile=str(certificate[0])))
    yield client
    client.close()


def answer_once(connection: socket.socket, over: threading.Event) -> None:
    read_request(connection)
    connection.sendall(OK)


def drip(connection: socket.socket, over: threading.Event) -> None:
    read_request(connection)
    for position in range(len(OK)):
        connection.sendall(OK[position : position + 1])
        if over.wait(1.0):
            return


def test_an_answer_comes_back_over_tls(
    transport: HttpTransport, over_tls: Callable[[Script], Script]
) -> None:
    """A certificate that the given context trusts."""
    with raw_server(over_tls(answer_once)) as server:
        evidence = exchanged(send(transport, server.url.replace("http:", "https:")))
    assert (evidence.phase, evidence.status) == (Phase.COMPLETE, 201)


def test_a_certificate_that_nobody_trusts_gets_no_byte(
    over_tls: Callable[[Script], Script],
) -> None:
    """The default check; the request is not sent."""
    client = HttpTransport()
    with raw_server(over_tls(answer_once)) as server:
        evidence = exchanged(send(client, server.url.replace("http:", "https:")))
    client.close()
    assert evidence.phase is Phase.NOT_SENT


def test_a_dripped_answer_ends_at_the_limit_over_tls(
    transport: HttpTransport, over_tls: Callable[[Script], Script]
) -> None:
    """The total limit holds where the client reads records in place of bytes."""
    with raw_server(over_tls(drip)) as server:
        began = time.monotonic()
        url = server.url.replace("http:", "https:")
        evidence = exchanged(send(transport, url, limit_seconds=0.8))
        took = time.monotonic() - began
    assert evidence.phase is Phase.SENT
    assert 0.7 < took < len(OK) / 2
