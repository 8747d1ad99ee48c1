"""rung.matmul on JAX arrays: a foreign function of XLA (librung_jax.so), under jit, vmap and grad, on CPUs and GPUs."""

from __future__ import annotations

import ctypes
import functools

import jax
import jax.numpy as jnp
import numpy as np

from ._library import MATH, RungError, ShapeError, check_math, open_library

_TARGET = "rung_matmul"


@functools.lru_cache(None)
def _register() -> None:
    if not hasattr(getattr(jax, "ffi", None), "register_ffi_target"):
        raise RungError(f"JAX {jax.__version__} has no jax.ffi.register_ffi_target: rung.matmul needs JAX 0.5 or newer for its arrays")
    library = open_library("librung_jax.so", ctypes.RTLD_GLOBAL)
    jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(library.rung_jax_matmul_cpu), platform="cpu")
    jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(library.rung_jax_matmul_gpu), platform="CUDA")


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def _product(a: jax.Array, b: jax.Array, trans_a: bool, trans_b: bool, math: str) -> jax.Array:
    """op(a) @ op(b) of equal batches of matrices."""
    rows, columns = a.shape[-1 if trans_a else -2], b.shape[-2 if trans_b else -1]
    result = jax.ShapeDtypeStruct(a.shape[:-2] + (rows, columns), jnp.float32)
    call = jax.ffi.ffi_call(_TARGET, result, vmap_method="broadcast_all")
    return call(a, b, math=np.int64(MATH[math]), trans_a=np.int64(trans_a), trans_b=np.int64(trans_b))


def _forward(a, b, trans_a, trans_b, math):
    return _product(a, b, trans_a, trans_b, math), (a, b)


def _backward(trans_a, trans_b, math, kept, gradient):
    a, b = kept
    of_a = _product(b, gradient, trans_b, True, math) if trans_a else _product(gradient, b, False, not trans_b, math)
    of_b = _product(gradient, a, True, trans_a, math) if trans_b else _product(a, gradient, not trans_a, False, math)
    return of_a, of_b


_product.defvjp(_forward, _backward)


def _checked(array, name: str) -> jax.Array:
    dtype = getattr(array, "dtype", jnp.float32)  # asked first: what asarray makes of NumPy's float64 is float32
    array = jnp.asarray(array)
    for holds in (dtype, array.dtype):
        if holds != jnp.float32:
            raise TypeError(f"{name} holds {holds}: Rung multiplies float32")
    if array.ndim == 0:
        raise ShapeError(f"{name} is a single number: matmul takes vectors, matrices and batches of them")
    return array


def matmul(a, b, math: str = "accurate") -> jax.Array:
    """a @ b by Rung, as jax.numpy.matmul: vectors, broadcasting, jit, vmap and reverse-mode gradients of any order."""
    check_math(math)
    a, b = _checked(a, "a"), _checked(b, "b")
    _register()
    left = a[None, :] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError(f"a is {a.shape} and b is {b.shape}: the inner sizes {left.shape[-1]} and {right.shape[-2]} differ")
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        raise ShapeError(f"the batches of a, {left.shape[:-2]}, and of b, {right.shape[:-2]}, cannot be broadcast together") from None
    rows, columns = left.shape[-2], right.shape[-1]
    if right.ndim == 2:  # one b for all: the batch is a taller matrix
        c = _product(left.reshape(int(np.prod(left.shape[:-1])), left.shape[-1]), right, False, False, math)
    else:
        c = _product(jnp.broadcast_to(left, batch + left.shape[-2:]), jnp.broadcast_to(right, batch + right.shape[-2:]),
                     False, False, math)
    return c.reshape(batch + (() if a.ndim == 1 else (rows,)) + (() if b.ndim == 1 else (columns,)))
