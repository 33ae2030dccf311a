/* Sizes that a user sets. They are kept in the symbols, which every inference looks at; what the
 * file declares stays as it is, except that an axis without a symbol is given one. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "graph/graph.h"

enum accel_err accel_model_bind_dim(struct accel_model *m, const char *name, int64_t n)
{
    struct accel_symbols *s = &m->symbols;
    struct accel_near near = accel_near_begin(name);
    if (n < 0)
        return accel_fail(ACCEL_EARG, "dim '%.200s' cannot be %" PRId64, name, n);
    for (size_t i = 0; i < s->n_kept; i++) {
        if (!s->at[i].name)
            continue;
        if (strcmp(s->at[i].name, name) == 0) {
            s->at[i].bound = n;
            return ACCEL_OK;
        }
        accel_near_try(&near, s->at[i].name);
    }
    if (near.best)
        return accel_fail(ACCEL_EARG, "the model has no dim '%.200s', did you mean '%.200s'?", name,
                          near.best);
    return accel_fail(ACCEL_EARG, "the model has no symbolic dim '%.200s'", name);
}

/* Binds one axis of an input's declared shape. */
static enum accel_err bind_axis(struct accel_model *m, const struct accel_value *v, int axis,
                                int64_t n)
{
    struct accel_symbols *s = &m->symbols;
    struct accel_dim *d = &v->declared.dim[axis], now = accel_dim_bound(*d, s);
    if (accel_dim_known(now)) {
        if (now.n != n)
            return accel_fail(ACCEL_EARG,
                              "input '%.200s' has size %" PRId64 " on axis %d, not %" PRId64,
                              v->name, now.n, axis, n);
        return ACCEL_OK;
    }
    if (d->sym < 0) {
        ACCEL_TRY(accel_dim_fresh(d, s));
        s->n_kept = s->n;
    }
    s->at[d->sym].bound = n;
    return ACCEL_OK;
}

enum accel_err accel_model_bind_input(struct accel_model *m, const char *input, int rank,
                                      const int64_t *dim)
{
    struct accel_near near = accel_near_begin(input);
    struct accel_value *v = NULL;
    for (size_t i = 0; i < m->graph->n_input && !v; i++) {
        if (strcmp(m->graph->input[i]->name, input) == 0)
            v = m->graph->input[i];
        accel_near_try(&near, m->graph->input[i]->name);
    }
    if (!v && near.best)
        return accel_fail(ACCEL_EARG, "the model has no input '%.200s', did you mean '%.200s'?",
                          input, near.best);
    if (!v)
        return accel_fail(ACCEL_EARG, "the model has no input '%.200s'", input);
    if (v->tensor)
        return accel_fail(ACCEL_EARG, "input '%.200s' is a constant of the model", input);
    if (v->declared.rank < 0) {
        struct accel_dim *d = ACCEL_NEW(&m->arena, struct accel_dim, rank);
        if (!d)
            return accel_fail_nomem();
        for (int i = 0; i < rank; i++)
            d[i] = accel_dim_unknown();
        v->declared = (struct accel_shape){rank, d};
    }
    if (v->declared.rank != rank)
        return accel_fail(ACCEL_EARG, "input '%.200s' has rank %d, not %d", input, v->declared.rank,
                          rank);
    for (int i = 0; i < rank; i++)
        if (dim[i] >= 0)
            ACCEL_TRY(bind_axis(m, v, i, dim[i]));
    return ACCEL_OK;
}
