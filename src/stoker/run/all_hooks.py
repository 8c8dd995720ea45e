"""Everything that is hooked once a script has torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.utils.data import dataloader

from stoker.run.engine_hooks import hook_engine
from stoker.run.entry_points import stand_around_libraries
from stoker.run.hooks import hook_torch, hook_torchdata
from stoker.run.loaders import Loaders
from stoker.run.phases import Phases

if TYPE_CHECKING:
    from stoker.run.start import Watch


def hook_all(watch: Watch) -> None:
    """Hook torch, what builds upon it, and libraries, each when it is imported."""
    if watch.settings.auto:
        from stoker.delegation import take_over

        take_over(num_workers="auto")
    loaders = Loaders(watch)
    # After `take_over`: it puts methods of its own in, which are hooked like torch's.
    hook_torch(dataloader, loaders)
    watch.imports.when_imported(
        "torchdata.stateful_dataloader.stateful_dataloader",
        lambda found: hook_torchdata(found, loaders),
    )
    phases = Phases(loaders)
    phases.hook()
    watch.probe.add("phases", phases.drain)
    hook_engine(watch.imports, loaders)
    stand_around_libraries(watch.library, watch.imports)
    watch.probe.add("library", watch.library.drain)
