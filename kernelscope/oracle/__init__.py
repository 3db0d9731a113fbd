"""Known-answer traces: schema-accurate exports whose answers come from the plan of the run.

A test of an analysis needs to know what is true. Here the truth comes first: a *plan* says what
happened, to the nanosecond; a writer turns it into the SQLite export of an Nsight Systems
generation; and the answers are computed from the plan by loops that a reader can check, never
from the file and never with the code under test.

>>> from kernelscope import oracle
>>> plan = oracle.Run().kernel(100, 200, "gemm", call=(40, 50)).plan()
>>> oracle.answers(plan)["kernels"][0]["total_ns"]
100

``oracle.write(plan, "run.sqlite", generation="2022.4")`` writes it. :data:`SCENES` holds whole
runs by name, :func:`large` runs of any size, :func:`random_run` small nasty ones.
"""

from kernelscope.oracle.answers import answers, totals
from kernelscope.oracle.host_answers import host_answers
from kernelscope.oracle.large import large
from kernelscope.oracle.nasty import random_run
from kernelscope.oracle.nsys import generations, write
from kernelscope.oracle.nsys_ddl import GENERATIONS
from kernelscope.oracle.plan import Plan, Setup, plan_of
from kernelscope.oracle.run import Run
from kernelscope.oracle.scenes import SCENES

__all__ = [
    "GENERATIONS",
    "SCENES",
    "Plan",
    "Run",
    "Setup",
    "answers",
    "generations",
    "host_answers",
    "large",
    "plan_of",
    "random_run",
    "totals",
    "write",
]
