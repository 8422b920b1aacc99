"""The three-way index: storage, retrieval and exact scores, in NumPy, C and FAISS."""
