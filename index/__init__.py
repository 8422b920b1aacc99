"""The three-way index: storage, retrieval and exact scores, in NumPy, Numba and FAISS."""
