"""An encoder's arithmetic, in C: compiled when the package is built, and checked at every call.

`kernels` is the module that it is compiled to, with the types that `kernels.pyi` gives;
`index/native/arrays.h` explains signatures, `setup.py` how all is compiled. Arrays of other types or lengths
are a ValueError or TypeError before any of it is read.
"""

try:
    import tercet.models.native.kernels  # noqa: F401 - that it is there
except ModuleNotFoundError as error:
    raise ImportError(
        "the kernels are not compiled: pip install -c constraints.txt -e '.[cpu]', or python setup.py "
        "build_ext --inplace"
    ) from error
