"""The loops over arrays, in C: compiled when the package is built, and checked at every call.

`kernels` is the module that they are compiled to, with the types that `kernels.pyi` gives. A kernel is given
arrays of the types and lengths that its signature has; another array is a ValueError or TypeError before any
of it is read, and stored numbers that lead nowhere are a DamagedIndexError. `arrays.h` explains signatures,
`setup.py` how all is compiled.
"""

try:
    import tercet.index.native.kernels  # noqa: F401 - that it is there
except ModuleNotFoundError as error:
    raise ImportError(
        "the kernels are not compiled: pip install -c constraints.txt -e '.[cpu]', or python setup.py "
        "build_ext --inplace"
    ) from error
