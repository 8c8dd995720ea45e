"""Changes DataLoader settings of any script: a cure, applied without a change of its code.

With this folder on PYTHONPATH, STOKER_DIAGNOSIS_SETTINGS holds {"0": {"num_workers": 4}}:
the settings of the script's first loader, as JSON.
"""

import functools
import inspect
import json
import os
import sys

ASKED = json.loads(os.environ.get("STOKER_DIAGNOSIS_SETTINGS", "{}"))


def overridden(init):
    """DataLoader's constructor, with the settings asked for put in place of the script's."""
    signature = inspect.signature(init)
    made = []

    @functools.wraps(init)
    def construct(self, *args, **kwargs):
        settings = ASKED.get(str(len(made)), {})
        made.append(self)
        bound = signature.bind(self, *args, **kwargs)
        bound.arguments.update(settings)
        if bound.arguments.get("num_workers", 0) == 0:
            bound.arguments.pop("prefetch_factor", None)
            bound.arguments.pop("persistent_workers", None)
        init(*bound.args, **bound.kwargs)

    return construct


if ASKED and "multiprocessing.spawn" not in sys.modules:
    from torch.utils.data import DataLoader

    DataLoader.__init__ = overridden(DataLoader.__init__)
