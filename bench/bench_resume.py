"""What does a state cost at sample 10 million, and how soon comes the batch after it?"""

from __future__ import annotations

import json
import pickle
import sys
from statistics import median
from typing import Any

from loops import CLOCK
from results import host_facts

import stoker

LENGTH = 20_000_000
POSITION = 10_000_000
BATCH = 100
REPEATS = 7

ORDERS: dict[str, dict[str, Any]] = {"in sequence": {}, "shuffled": {"shuffle": True}}


def first_batch_s(state: dict[str, Any] | None, given: dict[str, Any]) -> float:
    """From `iter` to the first batch, at the beginning or where `state` says."""
    loader = stoker.DataLoader(range(LENGTH), batch_size=BATCH, **given)
    begun = CLOCK()
    if state is not None:
        loader.load_state_dict(state)
    next(iter(loader))
    return CLOCK() - begun


def measured(given: dict[str, Any]) -> dict[str, Any]:
    """The figures of one order; fresh and resumed starts alternate."""
    loader = stoker.DataLoader(range(LENGTH), batch_size=BATCH, **given)
    next(iter(loader))
    loader.load_state_dict(loader.state_dict() | {"ticket": POSITION // BATCH})
    batches = iter(loader)
    next(batches)
    state_s = []
    for _ in range(REPEATS):
        begun = CLOCK()
        state = loader.state_dict()
        state_s.append(CLOCK() - begun)
    starts = [
        (first_batch_s(None, given), first_batch_s(state, given)) for _ in range(REPEATS)
    ]
    fresh, resumed = zip(*starts, strict=True)
    return {
        "state_dict_ms": {"median": median(state_s) * 1e3, "worst": max(state_s) * 1e3},
        "state_bytes": len(pickle.dumps(state)),
        "fresh_first_batch_s": {"median": median(fresh), "worst": max(fresh)},
        "resumed_first_batch_s": {"median": median(resumed), "worst": max(resumed)},
    }


def main() -> int:
    """Prints the figures as JSON."""
    rows = {name: measured(given) for name, given in ORDERS.items()}
    print(json.dumps({"host": host_facts(), "repeats": REPEATS, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
