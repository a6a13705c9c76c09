#!/usr/bin/python3
"""HINCRBY -q, look, give back: redis-py with the retry settings it comes with."""

import os

import redis

from subject import serve


def deduct(client, key, request):
    if client.hincrby(key, "stock", -request["qty"]) >= 0:
        return "sold"
    client.hincrby(key, "stock", request["qty"])
    return "sold_out"


serve(
    {
        "name": "redis-py-hincrby",
        "version": redis.__version__,
        "stores": ["redis"],
        "operations": ["deduct", "restock", "read"],
        "stock": {"key": "goods:{sku}", "field": "stock"},
    },
    deduct,
    redis.Redis.from_url(os.environ["REDIS_URL"]),
)
