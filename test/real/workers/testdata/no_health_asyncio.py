"""Calls to Io of the example's proto with asyncio, without a health service."""

import asyncio
import os
import signal
import sys

import grpc

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "..", "..", "examples", "python"))
from cabrank.example.v1 import work_pb2 as pb
from cabrank.example.v1 import work_pb2_grpc


class Work(work_pb2_grpc.WorkServicer):
    async def Io(self, request, context):
        await asyncio.sleep(request.millis / 1000)
        return pb.IoReply(millis=request.millis, worker="asyncio")


async def main():
    server = grpc.aio.server()
    work_pb2_grpc.add_WorkServicer_to_server(Work(), server)
    server.add_insecure_port(os.environ["CABRANK_ADDR"])
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(5)


asyncio.run(main())
