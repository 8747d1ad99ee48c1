"""rung.matmul on JAX arrays: shapes, gradients of any order, jit, vmap, errors. On the device that JAX has chosen."""

import unittest

import numpy as np

import jax
import jax.numpy as jnp
import rung

SHAPES = [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (3,)),
          ((5, 1, 2, 3), (7, 3, 4)), ((3,), (5, 3, 4)), ((2, 3), (6, 3, 4)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((130, 77), (77, 259))]


def random(shape, seed):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype=jnp.float32)


def exact(a, b):
    return jnp.matmul(a, b, precision="highest")


def strict(a, b):
    return rung.matmul(a, b, math="strict")


class Jax(unittest.TestCase):
    def close(self, x, y, what=None):
        self.assertEqual(x.shape, y.shape, what)
        largest = float(jnp.abs(y).max()) if y.size else 0.0
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-5 * largest + 1e-6, err_msg=str(what))

    def test_shapes_and_gradients(self):
        for left, right in SHAPES:
            a, b = random(left, 1), random(right, 2)
            self.close(strict(a, b), exact(a, b), (left, right))
            self.close(jax.jit(strict)(a, b), exact(a, b), (left, right))
            for which in (0, 1):
                mine, theirs = (jax.grad(lambda a, b: (f(a, b) ** 2).sum(), which)(a, b) for f in (strict, exact))
                self.close(mine, theirs, (left, right, which))

    def test_second_gradients(self):
        a, b = random((3, 4), 1), random((4, 5), 2)
        for which in (0, 1):
            def slope(f, a, b):
                return jax.grad(lambda a, b: (f(a, b) ** 3).sum(), which)(a, b).sum()
            for inner in (0, 1):
                self.close(*(jax.grad(lambda a, b: slope(f, a, b), inner)(a, b) for f in (strict, exact)), (which, inner))

    def test_vmap(self):
        a, b = random((6, 3, 4), 1), random((4, 5), 2)
        self.close(jax.vmap(strict, (0, None))(a, b), exact(a, b))
        self.close(jax.vmap(strict, (None, 0))(b.T, random((7, 4, 2), 3)), jax.vmap(exact, (None, 0))(b.T, random((7, 4, 2), 3)))
        self.close(jax.vmap(jax.vmap(strict))(random((2, 3, 4, 5), 1), random((2, 3, 5, 6), 2)),
                   exact(random((2, 3, 4, 5), 1), random((2, 3, 5, 6), 2)))

    def test_modes_and_alpha(self):
        a, b = random((40, 50), 1), random((50, 60), 2)
        for math in ("strict", "accurate"):
            self.close(rung.matmul(a, b, math=math), exact(a, b), math)
        self.assertLess(float(jnp.abs(rung.matmul(a, b, math="fast") - exact(a, b)).max()), 0.1)
        self.close(rung.matmul(a, b, alpha=2.0, math="strict"), 2 * exact(a, b))

    def test_many_threads(self):
        from concurrent.futures import ThreadPoolExecutor
        a, b = random((64, 64), 1), random((64, 64), 2)
        wanted = exact(a, b)
        with ThreadPoolExecutor(8) as pool:
            for c in pool.map(lambda _: strict(a, b), range(64)):
                self.close(c, wanted)

    def test_beside_numpy(self):
        """JAX's array may stand on the right alone, traced or not; an array of its own never changes, and no float64 is cut."""
        a, b = np.ones((4, 5), np.float32), jnp.full((5, 3), 2.0)
        self.assertIsInstance(rung.matmul(a, b), jax.Array)
        self.assertEqual(float(jax.jit(lambda b: rung.matmul(a, b))(b)[3, 2]), 10.0)
        self.assertEqual(float(jax.grad(lambda b: rung.matmul(a, b, alpha=0.5).sum())(b)[4, 2]), 2.0)
        out, array = np.zeros((4, 3), np.float32), jnp.zeros((4, 3))
        rung.matmul(a, b, out)
        self.assertTrue((out == 10).all())
        self.assertRaisesRegex(rung.RungError, "JAX arrays do not change", rung.matmul, a, np.asarray(b), array)
        self.assertTrue((array == 0).all())
        for x, y in ((a.astype(np.float64), b), (b.T, np.ones((5, 2)))):
            self.assertRaisesRegex(TypeError, "holds float64", rung.matmul, x, y)

    def test_refusals(self):
        a = random((2, 3), 1)
        self.assertRaisesRegex(ValueError, "the inner sizes 3 and 2 differ", rung.matmul, a, a)
        self.assertRaisesRegex(ValueError, "cannot be broadcast", rung.matmul, random((2, 2, 3), 1), random((5, 3, 2), 1))
        self.assertRaisesRegex(ValueError, "single number", rung.matmul, a, 1.0)
        self.assertRaisesRegex(TypeError, "float16", rung.matmul, a.astype("float16"), a.T)
        self.assertRaisesRegex(rung.RungError, "math is 'exact'", rung.matmul, a, a.T, math="exact")
        self.assertRaisesRegex(rung.RungError, "do not change", rung.matmul, a, a.T, out=np.zeros((2, 2), "f4"))


if __name__ == "__main__":
    unittest.main()
