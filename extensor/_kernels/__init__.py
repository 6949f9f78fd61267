"""The compiled kernels: straight loops over memory, and the drivers that run them.

    blocks     arithmetic, elementwise, activations   one loop over contiguous memory each
    drivers    drive       tiles, strides, broadcasting, threads, float16; map and summed map
               reduction   max/min, argmax, variance, softmax, log-sum-exp along an axis
               matrix      packed and blocked matrix product
               moving      copies between layouts and float dtypes, transposes, joins
               indexing    sums of rows scattered by position
               losses, optimizers   fused passes of their own
    formulas   vecmath.h   scalar functions that the compiler vectorises
               lanes.h     sums, extremes and searches of a row in vector lanes

Each module is compiled once per CPU level as ``extensor._kernels.<level>.<module>``; the level is
picked at import by ``extensor._cpu``. A kernel sees only valid buffers: every check, promotion and
allocation happens in ``extensor._apply``. A module hands its entry points out as capsules in a
dict called ``EXPORTS``.
"""
