"""A power iteration as CuPy runs it on a T4: small kernels, blocking copies of one number."""

from __future__ import annotations

from kernelscope.oracle.gpus import T4
from kernelscope.oracle.machine import Machine, Work
from kernelscope.oracle.plan import Plan, Setup, Thread, plan_of

PROCESS = 9_946
STEPS = 40
RED, GREEN, BLUE = 0xFFFF0000, 0xFF00FF00, 0xFF0000FF

_MULTIPLY = Work("gemvNSP_kernel<double, double, double, double>(T1)", 210_000, (64, 1, 1))
_NORM = (
    Work("cupy_multiply__float64_float64_float64", 2_100, (32, 1, 1), (128, 1, 1), 16),
    Work("cupy_sum", 4_600, (8, 1, 1), (512, 1, 1), 32, 4_096),
    Work("cupy_sqrt__float64_float64", 1_700, (1, 1, 1), (128, 1, 1), 18),
)
_DIVIDE = Work("cupy_true_divide__float64_float64_float64", 2_200, (32, 1, 1), (128, 1, 1), 20)


def cupy_like() -> Plan:
    """Return the plan: registered ranges with colours, driver launches, a copy back every step.

    Kernels of CuPy are launched with ``cuLaunchKernel``, those of libraries with
    ``cudaLaunchKernel``; each check of convergence waits for eight bytes.
    """
    machine = Machine(3, process=PROCESS, start=15_000_000, loading=900_000)
    with machine.range(PROCESS, "setup", registered=True, color=BLUE):
        machine.call(PROCESS, "cudaMalloc", 120_000)
        machine.copy(PROCESS, "HtoD", 4096 * 4096 * 8, pageable=True)
        machine.memset(PROCESS, 32_768)
    with machine.range(PROCESS, "power iteration", registered=True, color=GREEN):
        for step in range(STEPS):
            with machine.range(PROCESS, f"step {step}", registered=True, color=RED):
                _step(machine)
    machine.copy(PROCESS, "DtoH", 32_768, pageable=True)
    machine.synchronize(PROCESS)
    end = machine.now(PROCESS)
    machine.overhead(PROCESS, end + 9_000, end + 700_000, "CUDA profiling data flush")
    setup = Setup(
        gpus=(T4,),
        threads=(Thread(PROCESS, PROCESS, "python3"),),
        iteration_family="step #",
    )
    return plan_of(sorted(machine.events, key=lambda event: getattr(event, "start", 0)), setup)


def _step(machine: Machine) -> None:
    with machine.range(PROCESS, "multiply", registered=True, domain="linalg"):
        machine.think(PROCESS, 14_000)
        machine.launch(PROCESS, _MULTIPLY)
    with machine.range(PROCESS, "norm", registered=True, domain="linalg"):
        for work in _NORM:
            machine.think(PROCESS, 11_000)
            machine.launch(PROCESS, work, name="cuLaunchKernel")
        machine.copy(PROCESS, "DtoH", 8, pageable=True)
        machine.synchronize(PROCESS)
    machine.think(PROCESS, 11_000)
    machine.launch(PROCESS, _DIVIDE, name="cuLaunchKernel")
