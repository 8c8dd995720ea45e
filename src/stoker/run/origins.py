"""Asked against effective: which option, line and expression made each setting of a loader.

What was asked for on the command line and what the loader got can differ by a clamp or a
constant somewhere between. The source is read backwards from the call that made the loader;
no code of the script's is run for it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from types import FrameType
from typing import Literal

from stoker.run.origins_arguments import argument
from stoker.run.origins_arguments import partial as bound_by
from stoker.run.origins_argv import NAMES, means
from stoker.run.origins_arithmetic import FUNCTIONS, called, is_sum
from stoker.run.origins_asked import Asked, Wishes
from stoker.run.origins_code import path_of, start_of, text_of
from stoker.run.origins_leaves import Way, ways
from stoker.run.origins_points import At, Miss, Outcome, TooFar, Value
from stoker.run.origins_scopes import makes_loader
from stoker.run.origins_slice import Slice
from stoker.run.origins_values import UNKNOWN, Site, is_scalar, looked_up, sites_from

Kind = Literal[
    "same", "clamped", "hard-coded", "divided-by-ranks", "computed", "default", "unknown"
]

POSITIONS = {"batch_size": 1, "num_workers": 5, "pin_memory": 7, "drop_last": 8}
"""Which argument of torch's DataLoader each is, without its name."""

RANKS = re.compile(
    r"world_?size|n_?gpus?|gpus_per|device_count|replicas|ranks\b|nproc"
    r"|num_(devices|processes|nodes)",
    re.IGNORECASE,
)
"""What scripts call the number of trainers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where one setting of a loader came from; docs/recording.md has it as `origins`."""

    setting: str
    got: object
    asked: object = None
    source: str | None = None
    given: bool = False
    expression: str | None = None
    file: str
    line: int
    how: str | None = None
    kind: Kind = "unknown"


@dataclass(frozen=True, slots=True)
class Change:
    """A step at which the value became another one."""

    step: Value
    piece: Value
    hidden: ast.expr
    """The part of `step` that came in with the value before."""

    is_division: bool
    """By the number of ranks."""


def origins_of(
    frame: FrameType, settings: Mapping[str, object], argv: Sequence[str]
) -> list[dict[str, object]]:
    """The origin of each setting of a loader that the call under way in `frame` makes.

    Settings that are None are not in force (`prefetch_factor` without workers) and have no
    entry. Never raises: what fails is an entry of the kind "unknown".
    """
    place = frame.f_code.co_filename, frame.f_lineno
    try:
        found = origins_at(sites_from(frame), place, settings, argv, os.environ)
    except Exception:  # watching never breaks the run
        found = unknown_origins(place, settings)
    return [asdict(each) for each in found]


def origins_at(
    sites: Sequence[Site],
    place: tuple[str, int],
    settings: Mapping[str, object],
    argv: Sequence[str],
    environment: Mapping[str, str],
) -> list[Origin]:
    """As `origins_of`, of calls as they are described; the loader was made at `place`."""
    search = Search(sites, argv, environment)
    return [search.origin(each) for each in unknown_origins(place, settings)]


def unknown_origins(place: tuple[str, int], settings: Mapping[str, object]) -> list[Origin]:
    found = ((setting, settings.get(setting)) for setting in NAMES)
    return [
        Origin(setting=setting, got=got, file=place[0], line=place[1])
        for setting, got in found
        if got is not None and is_scalar(got)
    ]


class Search:
    """The origins of one loader's settings."""

    def __init__(
        self, sites: Sequence[Site], argv: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self._code = Slice(sites, environment)
        self._wishes = Wishes(sites, argv, environment)

    def origin(self, unknown: Origin) -> Origin:
        """What is known of `unknown`."""
        self._code.begin()
        try:
            return self._origin(unknown)
        except TooFar:
            return unknown

    def _origin(self, unknown: Origin) -> Origin:
        found = self._passed(unknown.setting)
        if isinstance(found, Value):
            return self._of_value(found, unknown)
        asked = self._wishes.of_name(unknown.setting, unknown.got, self._code, set())
        if found is Miss.ABSENT and asked is not None and asked.value != unknown.got:
            how = f"{unknown.setting} is not passed"
            return replace(told(unknown, kind="hard-coded", asked=asked), how=how)
        if found is Miss.ABSENT:
            return replace(unknown, kind="default")
        if asked is not None and asked.value == unknown.got:
            return told(unknown, kind="same", asked=asked)
        return unknown

    def _passed(self, setting: str) -> Outcome:
        """What the call that made the loader passes as `setting`."""
        made = self._made
        if made is None:
            return Miss.UNSURE
        call, at = made
        is_loader = self._makes_loader(call, at)
        index = POSITIONS.get(setting) if is_loader else None
        found = argument(self._code, call, at, setting, index)
        if found is Miss.ABSENT and setting in ("batch_size", "drop_last"):
            batches = argument(self._code, call, at, "batch_sampler", 4 if is_loader else None)
            if isinstance(batches, Value):
                return self._code.project(batches.node, (setting,), batches.at)
        return Miss.UNSURE if found is Miss.ABSENT and not is_loader else found

    @cached_property
    def _made(self) -> tuple[ast.Call, At] | None:
        """The call that made the loader: not a wrapper that hands on what it was passed."""
        depth = 0
        while (made := self._code.call(depth)) is not None and is_wrapper(*made):
            depth += 1
        return made

    def _makes_loader(self, call: ast.Call, at: At) -> bool:
        path = path_of(call.func)
        made = looked_up(path, at.names) if path and at.names is not None else UNKNOWN
        made = made.func if isinstance(made, partial) else made
        if isinstance(made, type):
            return any(kind.__name__ == "DataLoader" for kind in made.__mro__)
        bound = bound_by(self._code, call, at)
        return makes_loader(call) or (bound is not None and "Loader" in ast.unparse(bound[0]))

    def _of_value(self, value: Value, unknown: Origin) -> Origin:
        found = list(ways(self._code, value))
        if not found:
            return unknown  # too long a way
        way = self._way_of(unknown.setting, unknown.got, found)
        if way is not None:
            return self._of_way(way, unknown)
        is_constant = all(each.is_constant() and self._is_calculated(each) for each in found)
        kind: Kind = "hard-coded" if is_constant else "computed"
        piece = found[0].first_piece(self._code)
        but = {path for each in found for path in each.paths(self._code)}
        asked = self._wishes.of_name(unknown.setting, unknown.got, self._code, but)
        return told(unknown, kind=kind, asked=asked, piece=piece)

    def _way_of(self, setting: str, got: object, found: list[Way]) -> Way | None:
        """The way that leads to the wish for this setting."""
        leaves = [each for each in found if each.path is not None and each.passes_value()]
        by_name = [
            (max(means(setting, path[-1]) for _, path in way.spellings(self._code)), way)
            for way in leaves
        ]
        best = max((sureness for sureness, _ in by_name), default=0)
        if best:
            return next(way for sureness, way in by_name if sureness == best)
        plain = [way for way in leaves if self._may_be_wish(way, got)]
        opaque = [each for each in found if each.path is None and not each.is_constant()]
        return plain[0] if len(plain) == 1 and not opaque else None

    def _may_be_wish(self, way: Way, got: object) -> bool:
        """Whether a leaf with any name can be the wish: it was only calculated with."""
        leaf = way.leaf
        value = self._code.evaluate(leaf.node, leaf.at)
        return (
            isinstance(value, bool) == isinstance(got, bool)
            and not RANKS.search(ast.unparse(leaf.node))
            and self._is_calculated(way)
        )

    def _is_calculated(self, way: Way) -> bool:
        """Whether nothing but arithmetic stands between the leaf and the loader."""
        return all(
            called(step.node) in FUNCTIONS or way.is_handed_on(index, self._code)
            for index, step in enumerate(way.steps[:-1])
            if isinstance(step.node, ast.Call)
        )

    def _of_way(self, way: Way, unknown: Origin) -> Origin:
        got = unknown.got
        asked = self._wishes.of_leaf(way, self._code, got)
        is_passed_on = all(way.is_handed_on(i, self._code) for i in range(len(way.steps) - 1))
        if asked.value is UNKNOWN and is_passed_on:
            asked = Asked(got, asked.source, asked.given)
        if asked.value is UNKNOWN:
            but = set(way.paths(self._code))
            by_name = self._wishes.of_name(unknown.setting, got, self._code, but)
            if by_name is None:
                piece = way.first_piece(self._code)
                return told(unknown, kind="computed", asked=asked, piece=piece)
            asked = by_name
        if negated(way) and isinstance(asked.value, bool):
            asked = Asked(not asked.value, asked.source, asked.given)
            changes: list[Change] = []
        else:
            changes = self._changes(way, asked.value)
        if asked.value == got:
            return told(unknown, kind="same", asked=asked, piece=way.first_piece(self._code))
        clamps = [each for each in changes if not each.is_division]
        kind: Kind = "clamped" if clamps or not changes else "divided-by-ranks"
        if not changes:
            return told(unknown, kind=kind, asked=asked, piece=way.first_piece(self._code))
        return told(unknown, kind=kind, asked=asked, change=(clamps or changes)[0])

    def _changes(self, way: Way, value: object) -> list[Change]:
        """The steps at which what was asked for became another value, from the leaf up."""
        changes: list[Change] = []
        doubtful: list[Change] = []
        hidden = way.leaf.node
        for index in range(len(way.steps) - 2, -1, -1):
            step = way.steps[index]
            if way.is_handed_on(index, self._code):
                hidden = step.node
                continue
            if is_sum(step.node) and index > 0 and is_sum(way.steps[index - 1].node):
                continue  # of a sum in a sum only the whole counts
            now = self._code.evaluate(step.node, step.at, {id(hidden): value})
            change = Change(
                step, way.piece(index, self._code), hidden, self._divides_by_ranks(step)
            )
            if now is UNKNOWN and isinstance(step.node, ast.IfExp):
                # Which branch was taken cannot be told: the wish's, if that explains it.
                doubtful.append(change)
                hidden = step.node
                continue
            if now is UNKNOWN or now != value:
                changes.append(change)
            if now is UNKNOWN:
                break
            value, hidden = now, step.node
        return changes or doubtful

    def _divides_by_ranks(self, step: Value) -> bool:
        divisors = [
            each.right
            for each in ast.walk(step.node)
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div | ast.FloorDiv)
        ]
        return any(
            RANKS.search(text) for each in divisors for text in self._texts(each, step.at)
        )

    def _texts(self, node: ast.expr, at: At) -> list[str]:
        """`node` in words, and what it was set to if it is a name."""
        path = path_of(node)
        found = self._code.lookup(path, at) if path else Miss.UNSURE
        return [ast.unparse(each) for each in (node, getattr(found, "node", None)) if each]


def is_wrapper(call: ast.Call, at: At) -> bool:
    """Whether a library's `call` hands on all that it was passed."""
    spreads = isinstance(call.args[-1], ast.Starred) if call.args else False
    return at.site.is_library and spreads and None in [each.arg for each in call.keywords]


def negated(way: Way) -> bool:
    """Whether the option says the opposite of the setting: `not args.no_pin_memory`."""
    return any(
        isinstance(step.node, ast.UnaryOp) and isinstance(step.node.op, ast.Not)
        for step in way.steps
    )


def told(
    unknown: Origin,
    *,
    kind: Kind,
    asked: Asked | None,
    piece: Value | None = None,
    change: Change | None = None,
) -> Origin:
    """What is known of `unknown`."""
    value = None if asked is None or asked.value is UNKNOWN else asked.value
    how = None
    if change is not None:
        how = text_of(change.step.node, change.step.at.site.source, change.hidden)
        piece = change.piece
    site = None if piece is None else piece.at.site
    return Origin(
        setting=unknown.setting,
        got=unknown.got,
        asked=value,
        source=None if asked is None else asked.source,
        given=asked is not None and asked.given,
        expression=text_of(piece.node, site.source) if piece and site else None,
        file=site.file if site else unknown.file,
        line=start_of(piece.node)[0] if piece else unknown.line,
        how=how,
        kind=kind,
    )
