"""Publishes to sockets, by HTTP and by gRPC. usage: python push.py HOST:PORT CHANNEL"""

import json
import os
import sys
import urllib.request

import grpc
from cabrank.push.v1 import push_pb2, push_pb2_grpc

address, channel = sys.argv[1:]
bearer = "Bearer " + os.environ.get("CABRANK_PUSH_TOKEN", "")
request = urllib.request.Request(
    f"http://{address}/v1/publish",
    data=json.dumps({"channel": channel, "args": {"from": "python", "by": "http"}}).encode(),
    headers={"Content-Type": "application/json", "Authorization": bearer},
)
with urllib.request.urlopen(request) as answer:
    json.load(answer)["id"]

with grpc.insecure_channel(address) as connection:
    push = push_pb2_grpc.PushStub(connection)
    push.Publish(
        push_pb2.PublishRequest(channel=channel, args=json.dumps({"from": "python", "by": "grpc"})),
        metadata=[("authorization", bearer)],
    )
