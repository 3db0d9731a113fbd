"""Everything `kernelscope analyze` knows of a trace, in one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelscope.metrics.window import Window
from kernelscope.trace import Capture, Table


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The result of :func:`kernelscope.analyze`.

    Attributes
    ----------
    capture : Capture
        What the file says about itself.
    window : Window
        The interval that every figure speaks of.
    tables : mapping of str to Table
        The result tables of :mod:`kernelscope.metrics.results` by name.
    """

    capture: Capture
    window: Window
    tables: Mapping[str, Table]

    def __getattr__(self, name: str) -> Table:
        try:
            return self.tables[name]
        except KeyError:
            raise AttributeError(f"an analysis has no table {name!r}") from None

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return bool(self.tables["checks"]["ok"].all())
