"""The options on the command line, and which setting of a loader a name means. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stoker.run.origins_code import Path
from stoker.run.origins_values import UNKNOWN

NAMES = {
    "num_workers": ("numworkers", "workers", "nworkers", "numworker", "dataloadernumworkers"),
    "batch_size": ("batchsize", "batch", "bs"),
    "prefetch_factor": ("prefetchfactor", "prefetch", "dataloaderprefetchfactor"),
    "pin_memory": ("pinmemory", "pinmem", "dataloaderpinmemory"),
    "persistent_workers": (
        *("persistentworkers", "persistent"),
        "dataloaderpersistentworkers",
    ),
    "drop_last": ("droplast", "dataloaderdroplast"),
    "in_order": ("inorder",),
}
"""What scripts call each setting, without dashes and underscores."""

DECLARED = re.compile(r"""(?:add_argument|option)\(\s*((?:['"][\w-]+['"]\s*,?\s*)+)""")
QUOTED = re.compile(r"""['"]([\w-]+)['"]""")


@dataclass(frozen=True, slots=True)
class Given:
    """An option as it stands on the command line."""

    option: str
    """`--num-workers`; of Hydra's `data.num_workers=8`, `data.num_workers`."""

    text: str | None
    """What follows it; None for a switch."""

    is_short_for_more: bool = False
    """Only the start of the option's name stands there: another option may be meant."""


def plain(name: str | int) -> str:
    """`name` as it is compared: `--Num-Workers` and `num_workers` are one."""
    return re.sub(r"[-_+~]", "", str(name)).lower()


def means(setting: str, name: str | int) -> int:
    """How surely `name` means `setting`: 3 by its name, 2 by another, 1 within it, 0 not."""
    known, found = NAMES.get(setting, (plain(setting),)), plain(name)
    if found in known:
        return 3 if found == known[0] else 2
    return int(
        known[0] in found or any(found.endswith(each) for each in known if len(each) > 4)
    )


def options(argv: Sequence[str]) -> Iterator[Given]:
    """The options in `argv`, in order."""
    for index, token in enumerate(argv[1:], 1):
        name, equals, text = token.partition("=")
        if equals and re.fullmatch(r"[-+~]*[A-Za-z][\w.\-/@]*", name):
            yield Given(name if name.startswith("-") else name.lstrip("+~"), text)
        elif re.fullmatch(r"-{1,2}[A-Za-z][\w.\-]*", token):
            following = argv[index + 1] if index + 1 < len(argv) else None
            is_value = following is not None and not re.match(r"--?[A-Za-z]", following)
            yield Given(token, following if is_value else None)
            if re.fullmatch(r"-[A-Za-z]\d+", token):
                yield Given(token[:2], token[2:])


def given_for(path: Path, argv: Sequence[str], declared: dict[str, str]) -> Given | None:
    """The option that set what lies at `path`; the last one, as every parser has it.

    `args.num_workers` is set by `--num-workers`, by `-j` where the script declares it so,
    and by the start of its name, as argparse has it; `cfg.data.num_workers` by
    `data.num_workers=8`, too.
    """
    keys = [plain(key) for key in path]
    keys = keys[1:] if len(keys) > 1 else keys
    exact = shortened = None
    for given in options(argv):
        words = [plain(word) for word in declared.get(given.option, given.option).split(".")]
        length = min(len(words), len(keys))
        if words[-length:] == keys[-length:] or words == ["no" + keys[-1]]:
            exact = given
        elif given.option.startswith("--") and is_start(words, keys[-1]):
            shortened = replace(given, is_short_for_more=True)
    return exact or shortened


def is_start(words: list[str], name: str) -> bool:
    """Whether an option is so much of `name` that it can be told."""
    return len(words) == 1 and len(words[0]) > 2 and name.startswith(words[0])


def given_as(setting: str, argv: Sequence[str], declared: dict[str, str]) -> Given | None:
    """The option whose name means `setting`, if there is just one."""
    found = {
        given.option: given
        for given in options(argv)
        if means(setting, declared.get(given.option, given.option).rpartition(".")[2]) >= 2
    }
    return next(iter(found.values())) if len(found) == 1 else None


def declared_in(source: str) -> dict[str, str]:
    """`{"-j": "--workers"}` for each short option that a script declares with a long one."""
    if "-" not in source:
        return {}
    known: dict[str, str] = {}
    for match in DECLARED.finditer(source):
        names = QUOTED.findall(match[1])
        long = next((name for name in names if not re.fullmatch(r"-[A-Za-z]", name)), None)
        if long is not None:
            known |= {name: long for name in names if name != long}
    return known


def as_typed(given: Given, like: object) -> object:
    """What the option says, as a value of the type of `like`; UNKNOWN if it says no such."""
    if isinstance(like, bool):
        if given.text is None or given.option.startswith("--no"):
            return not given.option.startswith("--no")
        return truth(given.text)
    if given.text is None:
        return UNKNOWN
    return converted(given.text, like)


def converted(value: object, like: object) -> object:
    """`value` as the type of `like`: settings from the environment are text."""
    if not isinstance(value, str) or isinstance(like, str):
        return value
    if isinstance(like, bool):
        return truth(value)
    try:
        return int(value) if isinstance(like, int) else float(value)
    except ValueError:
        return UNKNOWN


def truth(text: str) -> object:
    if text.lower() in ("1", "true", "yes", "on", "y", "t"):
        return True
    return False if text.lower() in ("0", "false", "no", "off", "n", "f", "") else UNKNOWN
