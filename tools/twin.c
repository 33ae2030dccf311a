/* twin.c - watch callbacks copy what is wanted; graph inputs, which no node makes, are copied when
 * they are set. */
#include "tools/twin.h"

#include <string.h>

#include "base/alloc.h"

static enum accel_err keep(void *ctx, const struct accel_value *v, const struct accel_array *a)
{
    struct accel_twin_side *s = ctx;
    struct accel_twin_value *k = &s->value[v->index];
    const struct accel_dtype_info *d = accel_dtype_find((int)a->dtype);
    float *data = k->a.data;
    double one;
    if (!s->want[v->index])
        return ACCEL_OK;
    if (d->cls != ACCEL_CLASS_REAL)
        return accel_fail(ACCEL_ENOSUP, "value '%.200s' is %s", v->name, d->name);
    if (!ACCEL_GROW(k->dim, k->dim_cap, (size_t)a->rank + 1) ||
        !ACCEL_GROW(data, k->cap, (size_t)a->n + 1))
        return accel_fail_nomem();
    memcpy(k->dim, a->dim, (size_t)a->rank * sizeof *k->dim);
    k->a = (struct accel_array){ACCEL_F32, a->rank, k->dim, a->n, data};
    if (a->dtype == ACCEL_F32) {
        memcpy(data, a->data, (size_t)a->n * sizeof *data);
        return ACCEL_OK;
    }
    for (int64_t i = 0; i < a->n; i++) {
        accel_dtype_to_f64(a->dtype, a->data, (size_t)i, 1, &one);
        data[i] = (float)one;
    }
    return ACCEL_OK;
}

static bool wants(void *ctx, const struct accel_value *v)
{
    const struct accel_twin_side *s = ctx;
    return s->want[v->index];
}

static enum accel_err side_open(struct accel_twin *t, int i, struct accel_job *job,
                                const char *path, struct accel_model *m)
{
    struct accel_twin_side *s = &t->side[i];
    const struct accel_plan_options opt = {.watch = keep, .wants = wants, .watch_ctx = s};
    ACCEL_TRY(m ? accel_feed_borrow(&t->feed[i], m, path, &opt)
                : accel_feed_open(&t->feed[i], job, path, &opt));
    s->n_value = t->feed[i].m->graph->n_value;
    s->want = accel_calloc(s->n_value, sizeof *s->want);
    s->value = accel_calloc(s->n_value, sizeof *s->value);
    return s->want && s->value ? ACCEL_OK : accel_fail_nomem();
}

enum accel_err accel_twin_open(struct accel_twin *t, struct accel_job *job, const char *path,
                               struct accel_model *now, const char *data, int64_t batch)
{
    *t = (struct accel_twin){.log = &job->log};
    enum accel_err err = side_open(t, ACCEL_TWIN_OLD, job, path, NULL);
    if (!err && now)
        err = side_open(t, ACCEL_TWIN_NEW, job, path, now);
    if (!err)
        err = accel_batches_open(&t->data, job, data, ACCEL_SPLIT_TRAIN, &t->feed[0], batch);
    if (err)
        accel_twin_close(t);
    else
        accel_twin_forget(t);
    return err;
}

void accel_twin_close(struct accel_twin *t)
{
    accel_batches_close(&t->data);
    for (int i = 0; i < ACCEL_TWIN_SIDES; i++) {
        struct accel_twin_side *s = &t->side[i];
        for (size_t k = 0; s->value && k < s->n_value; k++) {
            accel_free(s->value[k].a.data);
            accel_free(s->value[k].dim);
        }
        accel_free(s->value);
        accel_free(s->want);
        accel_feed_close(&t->feed[i]);
    }
    *t = (struct accel_twin){0};
}

void accel_twin_forget(struct accel_twin *t)
{
    for (int i = 0; i < ACCEL_TWIN_SIDES; i++) {
        struct accel_twin_side *s = &t->side[i];
        if (!s->want)
            continue;
        memset(s->want, 0, s->n_value * sizeof *s->want);
        s->last = -2;
    }
}

void accel_twin_want(struct accel_twin *t, int side, const struct accel_value *v)
{
    struct accel_twin_side *s = &t->side[side];
    int index = v->producer ? v->producer->index : -1;
    s->want[v->index] = true;
    s->last = index > s->last ? index : s->last;
}

void accel_twin_rewind(struct accel_twin *t)
{
    t->data.next = 0;
    for (int i = 0; i < ACCEL_TWIN_SIDES; i++)
        if (t->feed[i].plan && t->side[i].last >= 0)
            accel_plan_stop_after(t->feed[i].plan, t->side[i].last);
}

static enum accel_err side_run(struct accel_twin *t, int i)
{
    struct accel_feed *f = &t->feed[i];
    struct accel_twin_side *s = &t->side[i];
    if (!f->plan || s->last == -2)
        return ACCEL_OK;
    ACCEL_TRY(accel_batches_feed(&t->data, f));
    for (int k = 0; k < f->n_in; k++)
        ACCEL_TRY(keep(s, accel_plan_input(f->plan, k), &t->data.array[k].a));
    return s->last >= 0 ? accel_feed_run(f, t->log) : ACCEL_OK;
}

enum accel_err accel_twin_next(struct accel_twin *t)
{
    ACCEL_TRY(accel_batches_next(&t->data));
    for (int i = 0; t->data.n && i < ACCEL_TWIN_SIDES; i++)
        ACCEL_TRY(side_run(t, i));
    return ACCEL_OK;
}

const struct accel_array *accel_twin_seen(const struct accel_twin *t, int side,
                                          const struct accel_value *v)
{
    const struct accel_twin_side *s = &t->side[side];
    return s->want[v->index] && s->value[v->index].a.data ? &s->value[v->index].a : NULL;
}
