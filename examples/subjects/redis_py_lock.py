#!/usr/bin/python3
"""redis-py's Lock with a lease around HGET, compare, HINCRBY -q."""

import os

import redis
from redis.exceptions import LockError

from subject import milliseconds, serve

LEASE = milliseconds("LEASE", 10)
WAIT = milliseconds("WAIT", 1)
RETRY = milliseconds("RETRY", 0.1)


def deduct(client, key, request):
    lock = client.lock(f"lock:{request['sku']}", timeout=LEASE, sleep=RETRY, blocking_timeout=WAIT)
    if not lock.acquire():
        return "busy"
    try:
        if int(client.hget(key, "stock")) < request["qty"]:
            return "sold_out"
        client.hincrby(key, "stock", -request["qty"])
        return "sold"
    finally:
        try:
            lock.release()
        except (LockError, redis.RedisError):
            pass  # what the buyer was promised does not change


serve(
    {
        "name": "redis-py-lock",
        "version": redis.__version__,
        "stores": ["redis"],
        "operations": ["deduct", "restock", "read"],
        "stock": {"key": "goods:{sku}", "field": "stock"},
        "leases": ["lock:{sku}"],
    },
    deduct,
    redis.Redis.from_url(os.environ["REDIS_URL"]),
)
