"""The protocol of docs/process-systems.md: a greeting, then one line for every request."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]], **greeting: object) -> None:
    """Answer requests until Instar closes the standard input. What `answer` raises is the answer to that request."""
    print(json.dumps({"instar": 1, "version": "1", **greeting}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"output": answer(request)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": request["id"], **reply}), flush=True)
