"""A server behind TLS is trusted by `ca_file` or SSL_CERT_FILE, and by nothing else."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from typer.testing import CliRunner

from flowserver.cli.main import app
from flowserver.client import Client, Unreachable
from flowserver.client.errors import AddressInvalid
from tests.support.certificate import make_certificate

FLOW = b'{"name": "f", "definition": "d"}'


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture(scope="module")
def url(certificate):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(FLOW)))
            self.end_headers()
            self.wfile.write(FLOW)

        def log_message(self, *_):
            pass

    class Server(HTTPServer):
        def handle_error(self, *_):
            """A client that does not trust the certificate disconnects."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_certificate_is_trusted_when_it_is_given(url, certificate, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    with Client(url, retries=0) as client, pytest.raises(Unreachable, match="certificate verify failed"):
        client.get_flow("f")
    with Client(url, ca_file=str(certificate)) as client:
        assert client.get_flow("f").definition == "d"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Client(url) as client:
        assert client.get_flow("f").definition == "d"


def test_the_option_of_the_command_line(url, certificate, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    done = CliRunner().invoke(app, ["flows", "get", "f", "--server", url, "--ca-file", str(certificate)])
    assert (done.exit_code, done.stdout) == (0, "d\n")


def test_a_file_without_certificates(tmp_path):
    for file in (tmp_path / "absent.pem", tmp_path / "empty.pem"):
        if file.stem == "empty":
            file.write_text("")
        with pytest.raises(AddressInvalid, match=file.name):
            Client("https://127.0.0.1:1", ca_file=str(file))
