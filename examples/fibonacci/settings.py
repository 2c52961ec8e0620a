"""Settings from the environment. What is wrong is one line, and exit code 2."""

import os
import sys


def refuse(line):
    print(line, file=sys.stderr)
    raise SystemExit(2)


def refuse_port(told, error):
    refuse(f"cannot listen on {told.host}:{told.port}: {error.strerror}; PORT chooses another one")


def text(*names, default):
    """The first of some variables that is there and not empty."""
    return next((os.environ[name] for name in names if os.environ.get(name)), default)


def number(*names, default, least, most):
    value = text(*names, default=str(default))
    if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
        refuse(f"{names[0]} must be a whole number from {least} to {most}, not {value!r}")
    return int(value)


def one_of(name, default, *words):
    value = text(name, default=default)
    if value not in words:
        refuse(f"{name} must be one of {', '.join(words)}, not {value!r}")
    return value


class Common:
    """What servers and fronts are told alike."""

    def __init__(self, port):
        # Cabrank gives its workers names, addresses and ports for their metrics.
        self.name = text("POD_NAME", "CABRANK_WORKER", default="server")
        self.mode = text("MODE", default="Normal")
        self.host = text("HOST", default="127.0.0.1")
        self.port = number("PORT", default=port, least=1, most=65535)
        self.grace = number("GRACE_SECONDS", default=20, least=0, most=3600)


class Server(Common):
    def __init__(self):
        super().__init__(port=50051)
        self.address = text("CABRANK_ADDR", default=f"{self.host}:{self.port}")
        self.workers = number("WORKERS", "CABRANK_SLOTS", default=1, least=1, most=1000)
        self.metrics_port = number("METRICS_PORT", "PROMETHEUS_EXPORTER_PORT", default=8000, least=0, most=65535)


class Front(Common):
    def __init__(self, workers):
        """workers is how many calls a request makes at once by default."""
        super().__init__(port=5000)
        server = text("SERVER_NAME", default="localhost")
        port = number("SERVER_PORT", default=50051, least=1, most=65535)
        # headless: every address of the name gets calls in turn. Else somebody on
        # the way balances, or nobody.
        kind = one_of("GRPC_SERVER_SVC_TYPE", "normal", "normal", "headless", "mesh", "relay")
        self.round_robin = kind == "headless"
        scheme = "dns:///" if self.round_robin else ""
        self.target = text("TARGET", default=f"{scheme}{server}:{port}")
        self.workers = number("WORKERS", default=workers, least=1, most=1000)
        # 0: a new connection for each HTTP request.
        self.connections = number("CONNECTIONS", default=1, least=0, most=1000)
        self.call_timeout = number("CALL_TIMEOUT_SECONDS", default=10, least=1, most=3600)
        # How often a name may be looked up again; gRPC's own default is 30 s.
        self.dns_seconds = number("DNS_MIN_SECONDS", default=30, least=1, most=3600)
