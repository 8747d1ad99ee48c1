"""A layer's product by Rung under jit and grad, beside JAX's own."""

import jax
import jax.numpy as jnp
import rung

x = jax.random.normal(jax.random.PRNGKey(1), (64, 128))
w = jax.random.normal(jax.random.PRNGKey(2), (128, 32))


@jax.jit
@jax.grad
def ours(w):
    return jnp.mean(rung.matmul(x, w, math="strict") ** 2)


@jax.grad
def theirs(w):
    return jnp.mean(jnp.matmul(x, w, precision="highest") ** 2)


error = jnp.abs(ours(w) - theirs(w)).max()
print(f"rung {rung.__version__}: the largest difference of a gradient to JAX is {error:.2g}")
assert error < 1e-4
