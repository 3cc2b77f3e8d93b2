"""The file that lists functions, and the loading of its handlers."""

import pytest

from flowserver.hosting.errors import HostingError
from flowserver.hosting.host_file import HostFile, read_host_file


@pytest.fixture
def read(tmp_path):
    def write_and_read(text):
        path = tmp_path / "functions.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_host_file(path)

    return write_and_read


def test_whole_file(read):
    host_file = read("""
        server: http://127.0.0.1:8080
        listen: 127.0.0.1:9200
        functions:
          fnf-demo/StartJob: start_job.py:handler
          fnf-demo/GetJobStatus: {handler: jobs/status.py:handler, timeoutSeconds: 30}
    """)
    assert (host_file.server, host_file.listen) == ("http://127.0.0.1:8080", "127.0.0.1:9200")
    start, status = host_file.functions.values()
    assert (start.handler, start.timeout_seconds) == ("start_job.py:handler", 60)
    assert (status.handler, status.timeout_seconds) == ("jobs/status.py:handler", 30)


def test_defaults(read):
    host_file = read("functions: {s/f: a.py:handler}")
    assert (host_file.server, host_file.listen) == (None, "127.0.0.1:9100")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "dictionary"),
        ("[]", "dictionary"),
        ("functions: {}", "functions: "),
        ("listen: 127.0.0.1:1", "`functions` is missing"),
        ("functions: {s/f: a.py:handler}\nport: 1", "`port` is unknown"),
        (
            "functions: {s/f: {handler: a.py:h, timeout: 3}}",
            "functions > s/f: `timeout` is unknown; did you mean `timeoutSeconds`?",
        ),
        ("functions: {s/f: {handlr: a.py:h}}", "`handlr` is unknown; did you mean `handler`?"),
        ("functions: {s/f: {timeoutSeconds: 3}}", "functions > s/f: `handler` is missing"),
        ("functions: {s/f: {handler: a.py:h, timeoutSeconds: 0}}", "timeoutSeconds"),
        ("functions: {s/f: {handler: a.py:h, timeoutSeconds: 90000}}", "timeoutSeconds"),
        ("functions: {s/f: {handler: a.py:h, timeoutSeconds: '3'}}", "timeoutSeconds"),
        ("functions: {s/f: index.handler}", "file.py:name"),
        ("functions: {s/f: {handler: a.py:h, preStop: h}}", "functions > s/f > preStop: a handler"),
        ("functions: {s/f: {handler: a.py:h, hookSeconds: 91}}", "hookSeconds"),
        ("functions: {s/f: {handler: a.py:h, concurrencyMax: 0}}", "concurrencyMax"),
        ("functions: {s/f: {handler: a.py:h, waitingMax: -1}}", "waitingMax"),
        ("functions: {s/f: 'a.py:'}", "file.py:name"),
        ("functions: {s/f: 3}", "functions > s/f"),
        ("functions: {f: a.py:handler}", "service/function"),
        ("functions: {a/b/c: a.py:handler}", "service/function"),
        ("functions: {s/f: a.py:h, s/f: b.py:h}", "s/f appears twice"),
        ("functions: {[a]: 1, [a]: 2}", "functions.yaml"),
        ("functions: [", "not valid YAML"),
        ("functions: !!python/object:os.system {}", "not valid YAML"),
        (b"\xff\xfe\xff", "not valid YAML"),
        ("server: 2020-13-45", "not valid YAML"),
    ],
)
def test_errors_are_named(read, text, message):
    with pytest.raises(HostingError) as refusal:
        read(text)
    assert message in str(refusal.value)


def test_functions_that_run_elsewhere_are_left_out(read):
    """One file serves `apply`, too, which registers these."""
    found = read("functions: {s/f: a.py:h, s/g: {url: 'http://127.0.0.1:9/', headersFromEnv: {a: B}}}")
    assert list(found.functions) == ["s/f"]
    with pytest.raises(HostingError, match="no function has a handler; `flowserver apply` registers"):
        read("functions: {s/g: {url: 'http://127.0.0.1:9/'}}")
    with pytest.raises(HostingError, match="s/g: `url` is unknown"):
        read("functions: {s/g: {url: 'http://127.0.0.1:9/', handler: a.py:h}}")


def test_every_error_is_named_at_once(read):
    with pytest.raises(HostingError, match=r"(?s)`port` is unknown.*s/f: `x` is unknown|s/f: `x`.*port"):
        read("port: 1\nfunctions: {s/f: {handler: a.py:h, x: 1}}")


def test_missing_file(tmp_path):
    with pytest.raises(HostingError, match=r"no\.yaml cannot be read: No such file"):
        read_host_file(tmp_path / "no.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "s/f: there is no file"),
        ("def handler(:", "cannot be loaded: SyntaxError"),
        ("import nothing_of_this_name", "cannot be loaded: ModuleNotFoundError"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("def other(event, context): ...", "defines no function handler"),
        ("handler = 3", "defines no function handler"),
    ],
)
def test_handlers_that_cannot_be_loaded(host, text, message):
    with pytest.raises(HostingError, match=message):
        host({} if text is None else {"a.py": text}, {"s/f": "a.py:handler"})


def test_hooks_that_cannot_be_loaded(host):
    files = {"a.py": "def handler(e, c): ..."}
    with pytest.raises(HostingError, match="defines no function stop"):
        host(files, {"s/f": {"handler": "a.py:handler", "preStop": "a.py:stop"}})
    with pytest.raises(HostingError, match="there is no file"):
        host(files, {"s/f": {"handler": "a.py:handler", "initializer": "b.py:initialize"}})


def test_files_of_one_name_are_separate(host):
    files = {"a/index.py": "def handler(e, c): return 'a'", "b/index.py": "def handler(e, c): return 'b'"}
    hosted = host(files, {"s/a": "a/index.py:handler", "s/b": "b/index.py:handler"})
    assert [hosted[title].handler(b"", None) for title in ("s/a", "s/b")] == ["a", "b"]


def test_handler_may_import_the_files_beside_it(host):
    files = {"c/prices.py": "PRICE = 3", "c/index.py": "import prices\ndef handler(e, c): return prices.PRICE"}
    assert host(files, {"s/c": "c/index.py:handler"})["s/c"].handler(b"", None) == 3


def test_dataclasses_work_in_handlers(host):
    text = "from dataclasses import dataclass\n@dataclass\nclass A:\n  x: 'int'\ndef handler(e, c): return A(1).x"
    assert host({"d.py": text}, {"s/d": "d.py:handler"})["s/d"].handler(b"", None) == 1


def test_example_of_the_documentation_is_valid():
    assert HostFile.model_validate({"functions": {"fnf-demo/echo": "index.py:handler"}})
