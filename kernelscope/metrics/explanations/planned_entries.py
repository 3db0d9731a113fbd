"""Definitions that stand before their tables do, or of tables that no analysis holds.

An entry counts once its table and column exist; until then nobody sees it. Then it belongs into
the file of its topic, with a query where SQL can recompute it.
"""

from __future__ import annotations

from kernelscope.metrics.explanations.entry import OWN, Explanation

PLANNED: tuple[Explanation, ...] = (
    Explanation(
        key="copy_exposure.exposed_ns",
        question="How much of the GPU's copying does no kernel hide?",
        formula="|P ∧ ¬(C ∨ M ∨ G)|",
        denominator="copy_ns",
        inputs=(
            "copies.start_ns",
            "copies.end_ns",
            "copies.kind",
            "kernels.start_ns",
            "kernels.end_ns",
        ),
        source=OWN,
        numbers="copy_ns - hidden_ns",
    ),
)
