/* repair_rows.c - edits of the plan point to its rows, so rows are added to a copy. */
#include "tools/repair_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/tensor_values.h"

enum accel_err accel_repair_rows_mark(struct accel_prune_plan *p, const struct accel_repair *r)
{
    struct accel_map kept = {0};
    enum accel_err err = ACCEL_OK;
    for (size_t i = 0; !err && i < r->n_row; i++)
        if (r->row[i].kept && !accel_map_put(&kept, r->row[i].weight, &r->row[i]))
            err = accel_fail_nomem();
    for (int i = 0; !err && i < p->n_row; i++) {
        struct accel_prune_row *row = &p->row[i];
        const struct accel_tensor *t = row->target->tensor;
        double *after;
        row->repaired = accel_tensor_has_values(t) &&
                        (!row->by_data || (t->name && accel_map_find(&kept, t->name)));
        if (!row->repaired || !row->counted || row->cut)
            continue;
        err = accel_tensor_values(&after, t);
        if (!err)
            accel_prune_row_fill(row, NULL, after);
        if (!err)
            accel_free(after);
    }
    accel_map_clear(&kept);
    return err;
}

/* The stored elements, without the edit. */
static enum accel_err stored(double **out, const struct accel_tensor *t)
{
    void *elem = accel_calloc((size_t)t->size + 1, 1);
    *out = accel_calloc((size_t)t->n + 1, sizeof **out);
    enum accel_err err = elem && *out ? accel_tensor_read(t, 0, t->n, elem) : accel_fail_nomem();
    if (!err)
        accel_dtype_to_f64(t->dtype, elem, 0, (size_t)t->n, *out);
    accel_free(elem);
    return err;
}

static enum accel_err fill(struct accel_prune_row *row, const struct accel_value *v,
                           struct accel_repair *r)
{
    const struct accel_tensor *t = v->tensor;
    struct accel_target *target = ACCEL_NEW(&r->arena, struct accel_target, 1);
    double *before = NULL, *after = NULL;
    if (!target)
        return accel_fail_nomem();
    *target = (struct accel_target){.tensor = v->tensor, .name = t->name, .reason = "repaired"};
    target->kind = ACCEL_TARGET_OTHER;
    target->node = v->n_use ? v->use[0].node : NULL;
    target->weight = (struct accel_weight){.rank = t->rank,
                                           .out_axis = -1,
                                           .in_axis = -1,
                                           .in_axis2 = -1,
                                           .type = "",
                                           .bias_slot = -1};
    target->scale_axis = -1;
    *row = (struct accel_prune_row){.target = target,
                                    .reason = target->reason,
                                    .repaired = true,
                                    .requested = NAN,
                                    .n = t->n,
                                    .dim = t->dim,
                                    .threshold = NAN};
    enum accel_err err = stored(&before, t);
    if (!err)
        err = accel_tensor_values(&after, t);
    if (!err)
        accel_prune_row_fill(row, before, after);
    accel_free(before);
    accel_free(after);
    return err;
}

/* "not selected; repaired" */
static enum accel_err add_reason(struct accel_prune_row *row, struct accel_repair *r)
{
    size_t n = strlen(row->reason);
    char *text = accel_arena_new(&r->arena, n + sizeof "; repaired", 1);
    if (!text)
        return accel_fail_nomem();
    memcpy(text, row->reason, n);
    strcpy(text + n, "; repaired");
    row->reason = text;
    return ACCEL_OK;
}

static enum accel_err add_rows(struct accel_prune_row *rows, int *n, const struct accel_model *m,
                               struct accel_map *have, struct accel_repair *r)
{
    const struct accel_graph *g = m->graph;
    for (int i = 0; i < *n; i++)
        if (rows[i].repaired && !rows[i].pruned)
            ACCEL_TRY(add_reason(&rows[i], r));
    for (size_t i = 0; i < g->n_value; i++) {
        const struct accel_value *v = g->value[i];
        if (v->tensor && v->tensor->name && accel_tensor_has_values(v->tensor) &&
            !accel_map_find(have, v->tensor->name))
            ACCEL_TRY(fill(&rows[(*n)++], v, r));
    }
    return ACCEL_OK;
}

enum accel_err accel_repair_rows_all(struct accel_prune_row **rows, int *n,
                                     const struct accel_prune_plan *p, const struct accel_model *m,
                                     struct accel_repair *r)
{
    struct accel_map have = {0};
    size_t most = (size_t)p->n_row;
    enum accel_err err = ACCEL_OK;
    for (size_t i = 0; i < m->graph->n_value; i++)
        most += m->graph->value[i]->tensor != NULL;
    *n = p->n_row;
    *rows = accel_calloc(most, sizeof **rows);
    if (!*rows)
        return accel_fail_nomem();
    if (p->n_row)
        memcpy(*rows, p->row, (size_t)p->n_row * sizeof **rows);
    for (int i = 0; !err && i < p->n_row; i++) {
        const char *name = p->row[i].target->tensor->name;
        if (name && !accel_map_put(&have, name, &(*rows)[i]))
            err = accel_fail_nomem();
    }
    if (!err)
        err = add_rows(*rows, n, m, &have, r);
    accel_map_clear(&have);
    return err;
}
