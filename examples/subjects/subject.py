"""The protocol side of a subject: see docs/subject-protocol.md."""

import json
import os
import sys


def milliseconds(name, default):
    """A time the run wants, in seconds; else the default."""
    return int(os.environ.get(f"STOCKPROOF_{name}_MS", default * 1000)) / 1000


def serve(hello, deduct, client):
    """Answer one request a line until the input ends. client is a redis.Redis."""
    hello["protocol"] = "stockproof/subject/v1"
    client.ping()  # the hello says that we are ready
    print(json.dumps(hello), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"id": request["id"]}
        key = f"goods:{request['sku']}"
        try:
            if request["op"] == "deduct" and request.get("qty", 0) >= 1:
                answer["outcome"] = deduct(client, key, request)
            elif request["op"] == "restock" and request.get("qty", 0) >= 1:
                client.hincrby(key, "stock", request["qty"])
                answer["outcome"] = "ok"
            elif request["op"] == "read":
                answer["value"] = int(client.hget(key, "stock"))
                answer["outcome"] = "value"
            else:
                answer.update(outcome="failed", error="no such operation or quantity")
        except Exception as error:  # in doubt it is unknown; a read changes nothing
            answer["outcome"] = "failed" if request["op"] == "read" else "unknown"
            answer["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)
