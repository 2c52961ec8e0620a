"""The Echo service on grpcio's threads: at 127.0.0.1:PORT."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

import echo
import echo_pb2_grpc


class Echo(echo_pb2_grpc.EchoServicer):
    def Say(self, request, context):
        return echo.answer(request, 1)

    def Repeat(self, request, context):
        for number in echo.numbers(request):
            yield echo.answer(request, number)


def main():
    server = grpc.server(ThreadPoolExecutor(30), options=echo.OPTIONS)
    echo_pb2_grpc.add_EchoServicer_to_server(Echo(), server)
    checks = health.HealthServicer()
    checks.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection(echo.NAMES, server)
    server.add_insecure_port(echo.ADDRESS)

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    stop.wait()
    server.stop(echo.GRACE).wait()


if __name__ == "__main__":
    main()
