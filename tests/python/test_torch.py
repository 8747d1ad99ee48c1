"""rung.matmul on PyTorch tensors: gradients of any order, the custom operator under torch.compile, errors. On the GPU too where
there is one."""

import unittest

import torch

import rung

SHAPES = [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (3,)),
          ((5, 1, 2, 3), (7, 3, 4)), ((3,), (5, 3, 4)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((130, 77), (77, 259))]
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
HAS_OPERATOR = hasattr(torch.library, "custom_op")


def loss(f, a, b):
    return torch.relu(f(a, b) * 2).square().sum()


def strict(a, b):
    return rung.matmul(a, b, math="strict")


class Torch(unittest.TestCase):
    def close(self, x, y, what=None):
        self.assertEqual(x.shape, y.shape, what)
        largest = y.abs().max().item() if y.numel() else 0.0
        torch.testing.assert_close(x, y, rtol=0, atol=1e-5 * largest + 1e-6, msg=lambda text: f"{what}: {text}")

    def test_shapes_and_gradients(self):
        for device in DEVICES:
            for left, right in SHAPES:
                torch.manual_seed(1)
                a = torch.randn(left, device=device, requires_grad=True)
                b = torch.randn(right, device=device, requires_grad=True)
                self.close(strict(a, b), a @ b, (device, left, right))
                mine, theirs = (torch.autograd.grad(loss(f, a, b), (a, b)) for f in (strict, torch.matmul))
                for x, y in zip(mine, theirs):
                    self.close(x, y, (device, left, right))

    def test_plain(self):
        """Multiplies matrices that nobody records: the bits are those of the operator, whatever was multiplied before. Every reason to use
    the operator is tried."""
        for device in DEVICES:
            torch.manual_seed(2)
            for m, k, n in ((1, 1, 1), (8, 8, 8), (33, 70, 65), (300, 200, 100)):
                a, b = torch.randn(m, k, device=device), torch.randn(k, n, device=device)
                for math in ("strict", "accurate", "strict"):
                    of_operator = rung.matmul(a.clone().requires_grad_(), b, math=math).detach()
                    self.assertTrue(torch.equal(rung.matmul(a, b, math=math), of_operator), (device, m, k, n, math))
                for other in (a.T.contiguous().T, a.repeat(1, 2)[:, :k]):
                    self.close(strict(other, b), other @ b, "no rows without gaps")
            a = torch.randn(4, 4, device=device)
            self.assertEqual(strict(a, a.clone().requires_grad_()).requires_grad, True)
            with torch.no_grad():
                self.close(strict(a, a.clone().requires_grad_()), a @ a, "no_grad")
            negative = torch.randn(4, 4, dtype=torch.complex64, device=device).conj().imag
            self.assertTrue(negative.is_neg())
            for view in (negative, negative[:, :1]):
                self.close(strict(a, view), a @ view, "a negated view")
            self.assertRaisesRegex(TypeError, "negated view", rung.matmul, a, a, negative)

    @unittest.skipUnless(HAS_OPERATOR, "PyTorch 2.4 has the first custom operators")
    def test_who_looks(self):
        """Checks that modes, tracers and transformations see the operator."""
        from torch.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
                seen.append(str(function))
                return function(*arguments, **(keywords or {}))

        a, b = torch.randn(3, 4), torch.randn(4, 5)
        strict(a, b)
        with Mode():
            strict(a, b)
        self.assertIn("rung.matmul.default", seen)
        traced = torch.jit.trace(strict, (a, b), check_trace=False)
        self.assertIn("rung::matmul", str(traced.graph))
        meta = strict(a.to("meta"), b.to("meta"))
        self.assertEqual((meta.shape, meta.device.type), ((3, 5), "meta"))

    def test_second_gradients(self):
        a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
        found = []
        for f in (strict, torch.matmul):
            first, = torch.autograd.grad(f(a, b).pow(3).sum(), a, create_graph=True)
            found.append(torch.autograd.grad(first.sum(), (a, b)))
        for x, y in zip(*found):
            self.close(x, y)

    @unittest.skipUnless(HAS_OPERATOR, "PyTorch 2.4 has the first custom operators")
    def test_operator(self):
        a, b = torch.randn(3, 5, 4, requires_grad=True), torch.randn(4, 6, requires_grad=True)
        rung.matmul(a, b)
        torch.library.opcheck(torch.ops.rung.matmul.default, (a, b, "strict"))

    @unittest.skipUnless(HAS_OPERATOR, "PyTorch 2.4 has the first custom operators")
    def test_compile(self):
        for device in DEVICES:
            a = torch.randn(33, 17, device=device, requires_grad=True)
            b = torch.randn(17, 9, device=device, requires_grad=True)
            for dynamic in (False, True):
                torch._dynamo.reset()
                backend = "aot_eager" if dynamic else "inductor"  # the first compiles no C++
                compiled = torch.compile(lambda a, b: loss(strict, a, b), fullgraph=True, dynamic=dynamic, backend=backend)
                for rows in (33, 20, 7) if dynamic else (33,):
                    mine, theirs = (torch.autograd.grad(f(a[:rows], b), (a, b))
                                    for f in (compiled, lambda a, b: loss(strict, a, b)))
                    for x, y in zip(mine, theirs):
                        self.close(x, y, (device, dynamic, rows))

    def test_alpha_and_out(self):
        """A gradient is kept or refused, never lost; an operand or an out may be NumPy's."""
        a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
        mine, theirs = (torch.autograd.grad(c.square().sum(), (a, b)) for c in (rung.matmul(a, b, alpha=-0.5), -0.5 * (a @ b)))
        for x, y in zip(mine, theirs):
            self.close(x, y)
        plain, out = a.detach().numpy(), torch.ones(3, 5)
        for arguments, scalars, name in (((a, b, out), {}, "a"), ((a.detach(), b, out), {"beta": 1.0}, "b"), ((plain, b), {}, "b"), ((a, b.detach().numpy()), {}, "a"),
                                         ((plain, b.detach(), torch.ones(3, 5, requires_grad=True)), {}, "out")):
            with self.assertRaisesRegex(rung.RungError, f"^{name} requires a gradient, which only a product of two tensors without an out gets"):
                rung.matmul(*arguments, **scalars)
        with torch.no_grad():
            self.close(rung.matmul(a, b, out, alpha=2.0, beta=1.0), 2 * (a @ b) + 1)
            self.close(rung.matmul(a, b, alpha=2.0), 2 * (a @ b))
        b = b.detach()
        for made in (rung.matmul(a.detach(), b.numpy()), rung.matmul(plain, b.numpy(), torch.empty(3, 10)[:, ::2])):
            self.close(made, a.detach() @ b)
        self.close(torch.from_numpy(rung.matmul(plain, b)), a.detach() @ b)

    def test_refusals(self):
        a = torch.randn(2, 3)
        self.assertRaisesRegex(ValueError, "the inner sizes 3 and 2 differ", rung.matmul, a, a)
        self.assertRaisesRegex(TypeError, "torch.float64", rung.matmul, a.double(), a.double().T)
        self.assertRaisesRegex(rung.RungError, "math is 'exact'", rung.matmul, a, a.T, math="exact")


if __name__ == "__main__":
    unittest.main()
