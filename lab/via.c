/* The ways a product reaches the library: on the stream, from host memory, in a captured graph, by another entry. */
#include "lab/verify.h"

#include <stdlib.h>

rung_status lab_verifier_set_via(lab_verifier *v, lab_via via)
{
    rung_math math = rung_context_math(v->context);
    if (via == v->via && v->entry.run)
        return RUNG_SUCCESS;
    lab_entry_close(&v->entry);
    v->via = via;
    if (via == LAB_BLAS)
        return lab_entry_open_blas(&v->entry, v->place, math);
    if (via == LAB_CUBLAS)
        return lab_entry_open_cublas(&v->entry, v->place, math);
    if (via == LAB_RANKS)
        return lab_entry_open_ranks(&v->entry, v->place, math);
    if (via != LAB_DIRECT && !v->place->tools)
        return lab_fail(RUNG_UNSUPPORTED, "host memory and graphs are ways to a GPU");
    if (!v->place->tools)
        return RUNG_SUCCESS;
    return rung_context_set_pointers(v->context, via == LAB_HOST ? RUNG_POINTERS_AUTO : RUNG_POINTERS_DEVICE);
}

/* Copies the whole buffer to host memory, guards included. *at is its first element. */
static void *bring_home(lab_verifier *v, const lab_operand *x, float **at)
{
    float *copy = malloc((size_t)x->words * 4);
    if (copy && lab_download(v->place, copy, x->memory.at, (size_t)x->words * 4) != RUNG_SUCCESS) {
        free(copy);
        copy = NULL;
    }
    *at = copy ? copy + x->first : NULL;
    return copy;
}

static rung_status run_from_host(lab_verifier *v, rung_plan *plan, const rung_gemm *device)
{
    rung_gemm g = *device;
    float *at_a, *at_b;
    void *a = bring_home(v, &v->a, &at_a), *b = bring_home(v, &v->b, &at_b), *c = bring_home(v, &v->c, &g.c);
    rung_status status = RUNG_OUT_OF_MEMORY;
    if (a && b && c) {
        g.a = at_a;
        g.b = at_b;
        status = rung_plan_run(plan, &g);
        if (status == RUNG_SUCCESS)
            status = lab_upload(v->place, v->c.memory.at, c, (size_t)v->c.words * 4);
    } else {
        lab_fail(status, "no host memory for copies of the operands");
    }
    free(a);
    free(b);
    free(c);
    return status;
}

int lab_via_chooses(lab_via via)
{
    return via == LAB_BLAS || via == LAB_CUBLAS || via == LAB_RANKS;
}

const char *lab_via_refuses(lab_via via, const lab_case *c)
{
    int columns = c->layout == RUNG_COL_MAJOR;
    switch (via) {
    case LAB_HOST:
        return c->form == LAB_ARRAYS || c->bias || c->device_scalars
                   ? "pointer arrays, bias and device scalars live in device memory"
                   : NULL;
    case LAB_BLAS:
    case LAB_RANKS:
        return c->form != LAB_SINGLE || c->bias || c->activation || c->device_scalars
                   ? "BLAS and ranks have neither batches, bias and activation nor device scalars"
                   : NULL;
    case LAB_CUBLAS:
        if (c->bias && (c->form != LAB_SINGLE || c->bias != (columns ? RUNG_BIAS_PER_ROW : RUNG_BIAS_PER_COLUMN)))
            return "cublasLt has a bias for each row of one column-major C";
        return (c->bias || c->activation) && (c->form == LAB_ARRAYS || !c->m || !c->n || !c->k)
                   ? "cublasLt has no arrays of pointers and no empty products"
                   : NULL;
    default: return NULL;
    }
}

static rung_status run_captured(lab_verifier *v, rung_plan *plan, const rung_gemm *g)
{
    rung_tools *tools = v->place->tools;
    void *graph = NULL;
    LAB_TRY(rung_tools_capture_begin(tools));
    rung_status queued = rung_plan_run(plan, g);
    rung_status status = rung_tools_capture_end(tools, &graph);
    if (queued == RUNG_SUCCESS && status == RUNG_SUCCESS)
        status = rung_tools_graph_launch(tools, graph);
    if (status == RUNG_SUCCESS)
        status = rung_tools_synchronize(tools);
    rung_tools_graph_destroy(tools, graph);
    return queued != RUNG_SUCCESS ? queued : status;
}

rung_status lab_run_via(lab_verifier *v, rung_plan *plan, const rung_gemm *g)
{
    switch (v->via) {
    case LAB_HOST: return run_from_host(v, plan, g);
    case LAB_GRAPH: return run_captured(v, plan, g);
    case LAB_BLAS:
    case LAB_CUBLAS:
    case LAB_RANKS: return v->entry.run(&v->entry, g);
    default: return rung_plan_run(plan, g);
    }
}
