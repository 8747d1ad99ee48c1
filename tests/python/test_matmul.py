"""The Python module on NumPy arrays: every layout a view can have, batches, alpha and beta, and what it refuses."""

import ctypes
import gc
import itertools
import os
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import rung


def views(rows, columns, batch, seed):
    """Yields the same matrix (or batch) as rows, as columns, and as a slice with padding."""
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

    def test_scalars_without_an_out(self):
        a, b = views(4, 6, None, 1)["rows"], views(6, 5, None, 2)["rows"]
        for x, y in ((a, b), (a, b[:, ::2]), (a.T.copy().T, b)):
            np.testing.assert_allclose(rung.matmul(x, y, alpha=-2.0), -2 * (x @ y), rtol=1e-5, atol=1e-5)
            with self.assertRaises(rung.RungError) as caught:
                rung.matmul(x, y, beta=0.5)
            self.assertIn("no out", str(caught.exception))

    def test_out_by_columns_of_any_layouts(self):
        for (na, a), (nb, b) in itertools.product(views(4, 6, None, 1).items(), views(6, 5, None, 2).items()):
            for no, out in views(4, 5, None, 3).items():
                rung.matmul(a, b, out)
                self.check(out, a, b, f"a {na}, b {nb}, out {no}")

    def test_shapes_that_have_one_operand_in_common(self):
        for m, n, k in ((4, 5, 6), (4, 7, 6), (3, 7, 6), (4, 5, 6), (5, 4, 6), (6, 4, 4)):
            a, b = views(m, k, None, 1)["rows"], views(k, n, None, 2)["rows"]
            self.check(rung.matmul(a, b), a, b, f"{m}x{n}x{k}")

    def test_nothing_to_add_up(self):
        for (m, n, k), batch in itertools.product(((0, 5, 3), (4, 0, 3), (4, 5, 0), (1, 1, 0)), (None, 3, 0)):
            a, b = views(m, k, batch, 1)["rows"], views(k, n, batch, 2)["rows"]
            self.check(rung.matmul(a, b), a, b, f"{m}x{n}x{k} batch {batch}")
            out = np.ones(a.shape[:-1] + (n,), np.float32)
            rung.matmul(a, b, out, beta=3.0)
            np.testing.assert_array_equal(out, np.full_like(out, 3.0) if k == 0 else out)

    def test_steps_that_are_no_whole_floats(self):
        packed = np.zeros((6, 4), dtype=[("value", "<f4"), ("mark", "<i2")])["value"]
        for a, b in ((packed, np.ones((4, 5), np.float32)), (packed[:, :1], np.ones((1, 5), np.float32)), (packed[:1].T, np.ones((1, 5), np.float32)),
                     (np.ones((5, 6), np.float32), packed)):
            with self.assertRaises(TypeError) as caught:
                rung.matmul(a, b)
            said = str(caught.exception)
            self.assertIn("not all are multiples of 4 bytes", said)
            name = said.split()[0]
            self.assertIn(f"; {name}.copy() makes them so", said)
            a, b = (x.copy() if name == n else x for x, n in ((a, "a"), (b, "b")))
            self.check(rung.matmul(a, b), a, b, said)  # which it does
        with self.assertRaisesRegex(TypeError, "a float's size; pass an array of its own"):
            rung.matmul(np.ones((6, 3), np.float32), np.ones((3, 4), np.float32), packed)

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

    def test_out_overlaps_itself_where_a_step_is_within_the_smaller_ones(self):
        """Small steps and sizes of every kind: each step has to pass what the smaller ones span; then no two indices name one element."""
        from rung import _array, _product
        looked = 0
        for dimensions in (1, 2, 3):
            for steps in itertools.product(range(-3, 8), repeat=dimensions):
                for sizes in itertools.product((1, 2, 3), repeat=dimensions):
                    view = _array.View(0, sizes, steps, -1, None)
                    wide = sorted((abs(step), size) for step, size in zip(steps, sizes) if size > 1)
                    spans = [sum((n - 1) * s for s, n in wide[:i]) for i in range(len(wide))]
                    overlaps = any(step <= span for (step, _), span in zip(wide, spans))
                    self.assertEqual(_product._overlaps_itself(view), overlaps, f"steps {steps}, sizes {sizes}")
                    if not overlaps:
                        named = {sum(i * s for i, s in zip(index, steps)) for index in itertools.product(*(range(n) for n in sizes))}
                        self.assertEqual(len(named), np.prod(sizes))
                    looked += 1
        self.assertGreater(looked, 30000)

    def test_out_that_shares_one_element_with_an_operand(self):
        a, b = views(4, 6, None, 1)["rows"], views(6, 5, None, 2)["rows"]
        for which, first in itertools.product((0, 1), (0, 1)):
            given, base = [np.array(a), np.array(b)], np.full((64,), 7.0, np.float32)
            size = given[which].size
            start, out_at = (19, 0) if first else (0, size - 1)
            base[start:start + size] = given[which].ravel()
            given[which] = base[start:start + size].reshape(given[which].shape)
            out = base[out_at:out_at + 20].reshape(4, 5)
            rung.matmul(*given, out)
            self.check(out, a, b, f"operand {which}, out {'before' if first else 'behind'} it")

    def test_contexts_end_with_their_threads(self):
        library, destroyed = rung._library.library(), []
        a, b = views(4, 6, None, 1)["rows"], views(6, 5, None, 2)["rows"]
        real, rung._library.library().rung_context_destroy = library.rung_context_destroy, lambda context: destroyed.append(context)
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

    def test_math_reaches_the_library(self):
        library, seen = rung._library.library(), []
        a, b = views(4, 6, None, 1)["columns"], views(6, 5, None, 2)["padded"]
        real, library.rung_context_set_math = library.rung_context_set_math, lambda context, math: seen.append(math) or 0
        try:
            for math in ("strict", "accurate", "fast"):
                rung.matmul(a, b, math=math)
        finally:
            library.rung_context_set_math = real
        self.assertEqual(seen, [0, 1, 2])

    def test_everything_numpy_takes(self):
        rng = np.random.default_rng(7)
        draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)
        for a, b in ((draw(4), draw(4)), (draw(4), draw(4, 5)), (draw(3, 4), draw(4)), (draw(4), draw(2, 4, 5)),
                     (draw(2, 3, 4), draw(4)), (draw(2, 1, 3, 4), draw(6, 4, 5)), (draw(2, 6, 3, 4), draw(2, 6, 4, 5)),
                     (draw(1, 3, 4), draw(5, 4, 2)), (draw(7, 1, 2, 3, 4), draw(1, 5, 1, 4, 3)), (draw(0, 3, 4), draw(4, 5))):
            self.check(rung.matmul(a, b), a, b, f"{a.shape} @ {b.shape}")
        whole, more = draw(12, 14, 10), draw(10, 12)
        for a, b in ((whole[0, ::2, ::2], more[::2, ::3]), (whole[0, ::-1], more[:, ::-1]), (whole[::-1, ::-1, ::-1], more),
                     (whole[::-1], more), (whole, draw(12, 10, 3)[::-1]),
                     (whole.transpose(1, 0, 2), more), (whole.transpose(2, 1, 0)[:, :, ::3], more[:4]),
                     (np.broadcast_to(whole[0], (3, 14, 10)), more), (whole[:, 0, ::-2], more[::2]), (whole[0, 0, ::-1], more)):
            self.check(rung.matmul(a, b), a, b, f"strides {a.strides} @ {b.strides}")
        memory = np.zeros(4 * 30 + 1, np.uint8)
        odd = memory[1:].view(np.float32).reshape(5, 6)  # at an address that is no multiple of 4
        odd[...], right = draw(5, 6), draw(6, 5)
        for _ in range(2):
            self.check(rung.matmul(odd, right), odd, right, "an odd address")
        self.check(rung.matmul(right, odd), right, odd, "an odd address on the right")
        want = right[:5] @ odd
        np.testing.assert_allclose(rung.matmul(right[:5], odd.copy(), out=odd), want, rtol=1e-4, atol=1e-4)
        read_only = whole[0].copy()
        read_only.flags.writeable = False
        self.check(rung.matmul(read_only, more), read_only, more, "read-only operand")

    def test_out_on_its_operands_and_in_any_strides(self):
        rng = np.random.default_rng(8)
        for order in (2, 9, 70):
            a = rng.standard_normal((order, order)).astype(np.float32)
            for beta in (0.0, 0.5):
                want, got = a @ a + np.float32(beta) * a, a.copy()
                self.assertIs(rung.matmul(got, got, out=got, beta=beta), got)
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
            memory = np.zeros((3 * order, 2 * order), np.float32)
            for out in (memory[::3, ::2], memory[::-3, ::-2], memory.T[:order, ::-3]):
                memory[...] = 7
                rung.matmul(a, a, out=out)
                np.testing.assert_allclose(out, a @ a, rtol=1e-4, atol=1e-4)
                self.assertEqual((memory == 7).sum(), memory.size - out.size)
        v, row = np.ones(5, np.float32), np.zeros(5, np.float32)
        rung.matmul(v, np.eye(5, dtype=np.float32), out=row)
        np.testing.assert_array_equal(row, v)

    def test_classes_and_shapes_as_numpy(self):
        class Mine(np.ndarray):
            pass
        x = np.ones((2, 3), np.float32)
        self.assertIs(type(rung.matmul(x.view(Mine), x.T)), Mine)
        self.assertIs(type(rung.matmul(np.matrix(x), x.T)), np.matrix)
        for a, b in ((x, x), (np.ones((2, 2, 3), np.float32), np.ones((3, 3, 2), np.float32)), (x, np.ones(2, np.float32))):
            with self.assertRaises(ValueError):
                rung.matmul(a, b)
            with self.assertRaises(ValueError):
                np.matmul(a, b)
        with self.assertRaises(ValueError):
            rung.matmul(x, x.T, out=np.zeros((3, 3), np.float32))
        self.assertIs(type(rung.matmul(x[0], x[1])), type(np.matmul(x[0], x[1])))
        self.assertEqual(rung.__version__, rung.version())
        self.assertIn("numpy.matmul", rung.matmul.__doc__)

    def test_a_vector_product_is_of_the_class_that_numpy_gives(self):
        class Mine(np.ndarray):
            pass
        x = np.arange(5, dtype=np.float32)
        for a, b in ((x.view(Mine), x), (x, x.view(Mine)), (np.rec.array(x), x), (x, x)):
            self.assertIs(type(rung.matmul(a, b)), type(np.matmul(a, b)))
            self.assertEqual(np.shape(rung.matmul(a, b)), ())

    def test_a_product_within_a_product(self):
        """A signal's handler, or what ends an object, multiplies matrices of the same shape while another call is being described."""
        a, ones, real = np.arange(64, dtype=np.float32).reshape(8, 8), np.ones((8, 8), np.float32), rung._empty
        unit = np.eye(8, dtype=np.float32)

        def between(*arguments):
            rung._empty = real
            self.assertTrue((rung.matmul(ones, ones) == 8).all())
            return real(*arguments)

        for _ in range(3):  # of a shape that was not there before, and of one that was
            rung._empty = between
            try:
                self.assertTrue((rung.matmul(a, unit) == a).all())
            finally:
                rung._empty = real

    def test_a_small_product_costs_little(self):
        a, b = np.ones((8, 8), np.float32), np.ones((8, 8), np.float32)
        ours, theirs = [], []
        for i in range(300):  # in turn, the fastest of each: other work on this machine only adds, and may last a while
            if i >= 30 and min(ours) <= 3.0 * min(theirs):
                break
            for times, call in ((ours, lambda: rung.matmul(a, b)), (theirs, lambda: np.matmul(a, b))):
                start = time.perf_counter()
                for _ in range(300):
                    call()
                times.append((time.perf_counter() - start) / 300)
        ratio = min(ours) / min(theirs)
        print(f"8x8: {min(ours) * 1e6:.2f} us, NumPy {min(theirs) * 1e6:.2f} us, {ratio:.2f} times", file=sys.stderr)
        self.assertLessEqual(ratio, 3.0)

    def test_a_dlpack_tensor_may_begin_behind_its_memory(self):
        class Tensor(ctypes.Structure):  # DLManagedTensor
            _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                        ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

        class Producer:
            def __init__(self, memory, first, shape):
                self.memory, self.shape = memory, (ctypes.c_int64 * 2)(*shape)
                self.tensor = Tensor(memory.ctypes.data, (1, 0), 2, 2, 32, 1, ctypes.addressof(self.shape), None, first * 4)

            def __dlpack__(self, **_):
                make = ctypes.pythonapi.PyCapsule_New
                make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
                return make(ctypes.addressof(self.tensor), b"dltensor", None)

        memory, b = np.arange(40, dtype=np.float32), np.eye(3, dtype=np.float32)
        out = np.empty((2, 3), np.float32)
        rung.matmul(Producer(memory, 5, (2, 3)), b, out=out)
        self.assertTrue((out == memory[5:11].reshape(2, 3)).all(), out)

    def test_one_matrix_for_a_batch(self):
        a, b = views(4, 6, 3, 1)["rows"], views(6, 5, None, 2)["rows"]
        self.check(rung.matmul(a, b), a, b, "b shared")

    def test_refusals_name_what_is_wrong(self):
        x = np.ones((2, 3), np.float32)
        for arguments, words in (((x, x), "(2, 3)"), ((x.astype(np.float64), x), "float32"), ((x, [1]), "list"),
                                 ((np.float32(1).reshape(()), x), "single number"),
                                 ((np.ones(4, "f4,u1")["f0"].reshape(2, 2), x), "4 bytes")):
            with self.assertRaises((rung.RungError, TypeError)) as caught:
                rung.matmul(*arguments)
            self.assertIn(words, str(caught.exception))
        # Each says what to do about it, too.
        masked = np.ma.masked_greater(x * np.float32(2), 1)
        for arguments, words in (((x.astype(np.float16), x), 'a.astype("float32")'), ((x, x.T.astype(">f4")), 'b.astype("float32")'),
                                 ((x, x.T.astype(int)), "<i8"), (([[1.0]], x), 'numpy.asarray(a, dtype="float32")'),
                                 ((masked, x.T), "a.filled(0)"), ((x, x.T, np.zeros((2, 2))), "pass an array of float32"),
                                 ((x, x.T, []), "out is a list")):
            with self.assertRaises(TypeError) as caught:
                rung.matmul(*arguments)
            self.assertIn(words, str(caught.exception))
        for of, words in ((np.complex64, "<c8"), (object, "|O"), ("U3", "<U3")):  # none of which float32 would be the same
            with self.assertRaises(TypeError) as caught:
                rung.matmul(x.astype(of), x.T)
            self.assertEqual(str(caught.exception), f"a holds {words}: Rung multiplies float32 ('<f4')")
        for scalars, words in (({"alpha": "two"}, "alpha is 'two'"), ({"beta": x}, "beta is array"), ({"alpha": 1j}, "alpha is 1j"),
                               ({"alpha": "2"}, "alpha is '2'"), ({"beta": None}, "beta is None"), ({"beta": np.complex64(2)}, "beta is ")):
            with self.assertRaises(TypeError) as caught:
                rung.matmul(x, x.T, **scalars)
            self.assertIn(words, str(caught.exception))
            self.assertIn(": it must be a real number", str(caught.exception))
        self.assertEqual(rung.matmul(np.ma.array(x), x.T)[0, 0], 3)  # nothing is masked
        named = {**os.environ, "RUNG_LIBRARY_DIR": "/nowhere"}
        run = subprocess.run([sys.executable, "-c", "import rung; rung.version()"], env=named, capture_output=True, text=True)
        self.assertIn("RUNG_LIBRARY_DIR is '/nowhere'", run.stderr)
        with self.assertRaises(rung.RungError) as caught:  # what the library itself refuses
            rung._library.Context(-7)
        self.assertIn("-7", str(caught.exception))
        rung.matmul(x, np.ones((3, 2), np.float32))  # a shape seen before refuses them, too
        for b in (x.T, np.ones((3, 2), np.float32)):
            for math in ("sloppy", None, 1, ["strict"], {}, b"strict", x):
                with self.assertRaises(rung.RungError) as caught:
                    rung.matmul(x, b, math=math)
                self.assertIn(f"math is {rung._library.said(math)}: one of strict, accurate, fast", str(caught.exception))
        with self.assertRaises(rung.RungError) as caught:
            rung.enable(["strict"])
        self.assertIn("math is ['strict']: one of", str(caught.exception))

    def test_scalars_are_those_of_fp32(self):
        """What FP32 rounds to infinity is refused, whatever way the product would go; infinities and NaN are taken as they are."""
        ones, largest = np.ones((2, 2), np.float32), float(np.finfo(np.float32).max)
        rounded = np.nextafter((2 - 2**-24) * 2.0**127, 0)  # the largest that FP32 rounds to a number
        for scalar, words in ((10**400, "100000000000000000...0000000000000000000"), (-(10**400), "-"), (10**5000, ""), (1e39, "1e+39"), (-1e300, "-1e+300"),
                              (np.float64(1e39), "1e+39"), (np.nextafter(rounded, np.inf), "3.4028235677973")):
            for name in ("alpha", "beta"):
                for a in (ones, ones[:, ::-1]):
                    out = None if name == "alpha" else np.zeros((2, 2), np.float32)
                    with self.assertRaises(rung.RungError) as caught:
                        rung.matmul(a, ones, out, **{name: scalar})
                    self.assertRegex(str(caught.exception), f"^{name} is .*: the largest number of FP32 is 3.4e38$")
                    self.assertIn(words, str(caught.exception))
        for scalar in (largest, rounded, -largest):
            self.assertEqual(abs(rung.matmul(ones[:1, :1], ones[:1, :1], alpha=scalar)[0, 0]), np.float32(largest))
        self.assertTrue(np.isposinf(rung.matmul(ones, ones, alpha=float("inf"))).all())
        self.assertTrue(np.isnan(rung.matmul(ones, ones, alpha=float("nan"))).all())
        self.assertEqual(rung.matmul(ones, ones, alpha=np.float64(3))[0, 0], 6)


if __name__ == "__main__":
    print(f"rung {rung.version()}, numpy {np.__version__}", file=sys.stderr)
    unittest.main()
