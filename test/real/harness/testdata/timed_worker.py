"""The worker of examples/python that keeps a record of each Io call.

The first argument is the folder of the records. Times are of the machine's
monotonic clock, so that they can be compared with those of callers.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../examples/python"))
import worker  # noqa: E402

RECORDS = open(os.path.join(sys.argv[1], worker.WORKER), "a", buffering=1)  # noqa: SIM115
PLAIN = worker.Work.Io


def timed(self, request, context):
    call = dict(context.invocation_metadata()).get("x-call", "-1")
    began = time.monotonic_ns()
    try:
        return PLAIN(self, request, context)
    finally:
        record = {"call": int(call), "worker": worker.WORKER, "began": began, "ended": time.monotonic_ns()}
        RECORDS.write(json.dumps(record) + "\n")


worker.Work.Io = timed
worker.main()
