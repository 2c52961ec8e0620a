"""The Echo service on grpcio's asyncio, one thread for all calls: at 127.0.0.1:PORT."""

import asyncio
import signal

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

import echo
import echo_pb2_grpc


class Echo(echo_pb2_grpc.EchoServicer):
    async def Say(self, request, context):
        return echo.answer(request, 1)

    async def Repeat(self, request, context):
        for number in echo.numbers(request):
            yield echo.answer(request, number)


async def main():
    server = grpc.aio.server(options=echo.OPTIONS)
    echo_pb2_grpc.add_EchoServicer_to_server(Echo(), server)
    checks = health.aio.HealthServicer()
    await checks.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection(echo.NAMES, server)
    server.add_insecure_port(echo.ADDRESS)

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start()
    await stop.wait()
    await server.stop(echo.GRACE)


if __name__ == "__main__":
    asyncio.run(main())
