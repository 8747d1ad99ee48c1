"""The Python module on NumPy arrays: every layout a view can have, batches, alpha and beta, and what it refuses."""

import gc
import itertools
import sys
import threading
import unittest

import numpy as np
import rung


def views(rows, columns, batch, seed):
    """The same matrix (or batch) as rows, as columns, and as a slice with padding."""
    rng = np.random.default_rng(seed)
    shape = (rows, columns) if batch is None else (batch, rows, columns)
    x = rng.standard_normal(shape).astype(np.float32)
    padded = np.zeros(shape[:-1] + (columns + 3,), np.float32)
    padded[..., :columns] = x
    return {"rows": x, "columns": np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2), "padded": padded[..., :columns]}


class Matmul(unittest.TestCase):
    def check(self, got, a, b, note):
        exact = a.astype(np.float64) @ b.astype(np.float64)
        scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        self.assertEqual(got.shape, exact.shape, note)
        error = np.max(np.abs(got - exact) / np.maximum(scale, 1e-300), initial=0.0) * 2**24
        self.assertTrue(error <= 8 + a.shape[-1] ** 0.5, f"{note}: {error} u")

    def test_layouts(self):
        for (m, n, k), batch in itertools.product(((1, 1, 1), (5, 7, 3), (1, 9, 4), (6, 1, 8), (33, 65, 129)), (None, 3)):
            for (na, a), (nb, b) in itertools.product(views(m, k, batch, 1).items(), views(k, n, batch, 2).items()):
                self.check(rung.matmul(a, b), a, b, f"{m}x{n}x{k} batch {batch}, a {na}, b {nb}")

    def test_out_keeps_its_layout_and_padding(self):
        a, b = views(4, 6, None, 1)["rows"], views(6, 5, None, 2)["rows"]
        for name, out in views(4, 5, None, 3).items():
            before, base = out.copy(), out.base
            padding = None if name != "padded" else base[:, 5:].copy()
            self.assertIs(rung.matmul(a, b, out, alpha=2.0, beta=-0.5), out)
            np.testing.assert_allclose(out, 2 * (a @ b) - before / 2, rtol=1e-5, atol=1e-5)
            if padding is not None:
                np.testing.assert_array_equal(base[:, 5:], padding)

    def test_nothing_to_add_up(self):
        for (m, n, k), batch in itertools.product(((0, 5, 3), (4, 0, 3), (4, 5, 0), (1, 1, 0)), (None, 3, 0)):
            a, b = views(m, k, batch, 1)["rows"], views(k, n, batch, 2)["rows"]
            self.check(rung.matmul(a, b), a, b, f"{m}x{n}x{k} batch {batch}")
            out = np.ones(a.shape[:-1] + (n,), np.float32)
            rung.matmul(a, b, out, beta=3.0)
            np.testing.assert_array_equal(out, np.full_like(out, 3.0) if k == 0 else out)

    def test_out_with_gaps_between_columns(self):
        for (m, n), step in itertools.product(((1, 5), (1, 1), (4, 1)), (1, 2, 3)):
            a, b = views(m, 6, None, 1)["rows"], views(6, n, None, 2)["rows"]
            whole = np.full((m, n * step), 7.0, np.float32)
            out = whole[:, ::step]
            rung.matmul(a, b, out)
            self.check(out, a, b, f"{m}x{n}, every {step}th column")
            gaps = np.delete(whole, np.s_[::step], axis=1)
            np.testing.assert_array_equal(gaps, np.full_like(gaps, 7.0))

    def test_out_that_cannot_be_written_is_left_alone(self):
        a, b = views(4, 6, 3, 1)["rows"], views(6, 5, None, 2)["rows"]
        base = np.full((200,), 7.0, np.float32)
        read_only = np.zeros((3, 4, 5), np.float32)
        read_only.flags.writeable = False
        strided = np.lib.stride_tricks.as_strided
        for out, words in ((strided(base, (3, 4, 5), (0, 20, 4)), "overlap"), (strided(base, (3, 4, 5), (80, 8, 4)), "overlap"),
                           (strided(base, (3, 4, 5), (80, 0, 4)), "overlap"), (read_only, "read-only")):
            with self.assertRaises(rung.RungError) as caught:
                rung.matmul(a, b, out)
            self.assertIn(words, str(caught.exception))
        self.assertTrue((base == 7).all() and (read_only == 0).all())

    def test_contexts_end_with_their_threads(self):
        library, destroyed = rung._lib(), []
        a, b = views(4, 6, None, 1)["rows"], views(6, 5, None, 2)["rows"]
        real, rung._lib().rung_context_destroy = library.rung_context_destroy, lambda context: destroyed.append(context)
        try:
            threads = [threading.Thread(target=rung.matmul, args=(a, b)) for _ in range(3)]
            for thread in threads:
                thread.start()
                thread.join()
            gc.collect()
        finally:
            library.rung_context_destroy = real
        self.assertEqual(len(destroyed), 3)
        for context in destroyed:
            real(context)

    def test_one_matrix_for_a_batch(self):
        a, b = views(4, 6, 3, 1)["rows"], views(6, 5, None, 2)["rows"]
        self.check(rung.matmul(a, b), a, b, "b shared")

    def test_refusals_name_what_is_wrong(self):
        x = np.ones((2, 3), np.float32)
        for arguments, words in (((x, x), "2 x 3"), ((x.astype(np.float64), x), "float32"), ((x, [1]), "list"),
                                 ((x[0], x), "dimensions"), ((np.ones(4, "f4,u1")["f0"].reshape(2, 2), x), "4 bytes"),
                                 ((np.ones((4, 6), np.float32)[::2, ::2], x.T), "strides")):
            with self.assertRaises((rung.RungError, TypeError)) as caught:
                rung.matmul(*arguments)
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(rung.RungError) as caught:
            rung.matmul(x, x.T, math="sloppy")
        self.assertIn("strict", str(caught.exception))


if __name__ == "__main__":
    print(f"rung {rung.version()}, numpy {np.__version__}", file=sys.stderr)
    unittest.main()
