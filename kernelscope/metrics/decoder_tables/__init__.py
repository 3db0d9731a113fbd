"""What kernels of libraries are called: the tables that :mod:`kernel_decoder` reads.

To teach the decoder a library is to add rows here:

- :data:`grammars.GRAMMARS`: names that spell types, instruction and tile
  (``ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn``), one regular expression each.
- :data:`functions.FUNCTIONS`: functions of libraries by their own name (``softmax_warp_forward``).
- :data:`namespaces.NAMESPACES`: whose everything in a namespace is, and :data:`namespaces.WORDS`:
  what a function of a known library likely does, by words of its name.
- :data:`functors.FUNCTORS`: what a general kernel does, by its template arguments.
"""
