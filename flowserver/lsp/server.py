"""The language server over stdin and stdout, put together."""

from typing import Any

from lsprotocol import types

from flowserver.base.limits import Limits
from flowserver.lsp.features import add_features, offers
from flowserver.lsp.language_server import QUIET_SECONDS, FlowLanguageServer
from flowserver.lsp.refusals import keep_refusals_from_the_log


def make_server(limits: Limits, *, lenient: bool = False) -> FlowLanguageServer:
    """A server with all that it offers."""
    server = FlowLanguageServer(limits, lenient=lenient)
    _follow_files(server)
    add_features(server)

    @offers(server, types.SHUTDOWN)
    def shut_down(_: Any) -> None:
        server.is_shut_down = True

    return server


def _follow_files(server: FlowLanguageServer) -> None:
    @offers(server, types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        server.take(document.uri, document.version, document.text, 0)

    @offers(server, types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        text = server.workspace.get_text_document(document.uri).source
        server.take(document.uri, document.version, text, QUIET_SECONDS)

    @offers(server, types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)


def serve(limits: Limits, *, lenient: bool = False) -> bool:
    """Serve the editor at stdin and stdout until it ends; returns whether it said that it would."""
    keep_refusals_from_the_log()
    server = make_server(limits, lenient=lenient)
    server.start_io()
    return server.is_shut_down
