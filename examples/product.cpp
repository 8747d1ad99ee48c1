// A product from C++: a context that closes itself, vectors for the matrices.
#include <rung.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

using context = std::unique_ptr<rung_context, decltype(&rung_context_destroy)>;

static context open()
{
    rung_context *made = nullptr;
    if (rung_context_create(&made, nullptr) != RUNG_SUCCESS)
        throw std::runtime_error(rung_last_error());
    return context(made, rung_context_destroy);
}

int main()
{
    const int64_t m = 300, n = 200, k = 100;
    std::vector<float> a(m * k, 1.0f), b(k * n, 2.0f), c(m * n);
    context rung = open();
    if (rung_sgemm(rung.get(), RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, m, n, k, 1.0f, a.data(), k, b.data(), n, 0.0f,
                   c.data(), n) != RUNG_SUCCESS)
        throw std::runtime_error(rung_last_error());
    std::printf("C[0] = %g, and should be %g\n", static_cast<double>(c[0]), 2.0 * static_cast<double>(k));
    return c[0] == 2.0f * k ? 0 : 1;
}
