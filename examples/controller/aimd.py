#!/usr/bin/env python3
"""A controller for `tidegate gym program:examples/controller/aimd.py`.

The oldest idea there is: additive increase, multiplicative decrease. With a queue, each rate falls to 85 % of
itself, at most once in 0.2 s; without one, and with load, it rises by 2 % of the base rate each call.
"""

import json
import sys

TARGET_MS = 20


def main():
    start = json.loads(sys.stdin.readline())
    rates = dict(start["base"])
    print(json.dumps({"up": rates["up"], "down": rates["down"], "reason": "begin"}), flush=True)

    least_ms = {}
    fell = {"up": 0.0, "down": 0.0}
    delay = {"up": 0.0, "down": 0.0}
    for line in sys.stdin:
        call = json.loads(line)
        for reply in call["replies"]:
            for way in ("up", "down"):
                # Without timestamps, half of the round trip has to do.
                took = reply.get(way + "_ms", reply["rtt_ms"] / 2)
                key = (reply["target"], way)
                least_ms[key] = min(least_ms.get(key, took), took)
                delay[way] += 0.3 * (took - least_ms[key] - delay[way])
        answer = {}
        for way in ("up", "down"):
            backlog = call.get("counters", {}).get(way, {}).get("backlog", 0)
            if delay[way] > TARGET_MS and call["at"] - fell[way] > 0.2:
                rates[way] *= 0.85
                fell[way] = call["at"]
                answer["reason"] = "delay-high"
            elif delay[way] <= TARGET_MS and backlog > 3000:
                rates[way] += 0.02 * start["base"][way]
                answer.setdefault("reason", "load-high")
            else:
                continue
            rates[way] = min(max(rates[way], start["least"][way]), start["most"][way])
            answer[way] = round(rates[way])
            answer["delay_ms"] = max(delay[way], 0)
        print(json.dumps(answer), flush=True)


main()
