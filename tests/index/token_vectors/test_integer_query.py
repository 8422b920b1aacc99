import numpy as np

from tercet.index.token_vectors.integer_query import LANES, IntegerQuery, as_bytes


def test_a_query_as_bytes_says_how_far_it_is_off() -> None:
    query = np.array([[0.5, -0.25, 0.1], [0, 0, 0]], np.float32)
    integers = IntegerQuery.of(query)
    assert integers.packed.shape == (1, 16, LANES, 4)
    assert integers.packed[0, 0, 0].tolist() == [127, -64, 25, 0]  # 0.5 / 127 a step; 63.5 is rounded to even
    np.testing.assert_allclose(integers.scales[0, :3], [0.5 / 127, 0, 0])
    assert integers.sums[0, :2].tolist() == [128 * 88, 0]
    step = 0.5 / 127
    np.testing.assert_allclose(integers.errors, [np.hypot(-0.25 + 64 * step, 0.1 - 25 * step), 0], rtol=1e-5)


def test_bytes_without_a_bound_are_the_same() -> None:
    vectors = np.random.default_rng(1).standard_normal((21, 70)).astype(np.float32)
    vectors[4] = 0
    integers = IntegerQuery.of(vectors)
    values, scales = as_bytes(vectors)
    lanes = integers.packed.transpose(0, 2, 1, 3).reshape(-1, values.shape[1])
    assert np.array_equal(values, lanes[:21])
    assert np.allclose(scales, integers.scales.reshape(-1)[:21])
