/* Constants are counted where they are stored, so that a weight read by several nodes, or by both
 * branches of an If, counts once: at its first reader. Nodes are walked with a stack of our own,
 * since a file decides how deep bodies nest. */
#include "api/summary.h"

#include "base/alloc.h"
#include "graph/infer.h"
#include "graph/op.h"

#include <stdlib.h>
#include <string.h>

/* What is known of one stored constant. */
struct entry {
    const struct accel_tensor *tensor;
    uint64_t zeros;
    bool is_float, unread, seen, statistic;
};

struct walk {
    struct accel_summary *out;
    struct entry *entry; /* sorted by address */
    size_t n_entry;
    struct accel_graph **todo; /* bodies still to visit, next one last */
    size_t n_todo, todo_cap;
};

static int by_address(const void *a, const void *b)
{
    const struct accel_tensor *x = ((const struct entry *)a)->tensor,
                              *y = ((const struct entry *)b)->tensor;
    return (uintptr_t)x < (uintptr_t)y ? -1 : (uintptr_t)x > (uintptr_t)y;
}

static struct entry *find(const struct walk *w, const struct accel_tensor *t)
{
    struct entry key = {.tensor = t};
    return w->n_entry ? bsearch(&key, w->entry, w->n_entry, sizeof key, by_address) : NULL;
}

struct counter {
    enum accel_dtype dtype;
    uint64_t zeros;
};

/* Zeros of both signs: all bits but the sign are 0. The pieces are not aligned. */
static enum accel_err count(void *ctx, uint64_t first, uint64_t n, const void *elem)
{
    struct counter *c = ctx;
    const char *p = elem;
    uint64_t zeros = 0;
    (void)first;
    if (c->dtype == ACCEL_F32) {
        for (uint64_t i = 0; i < n; i++) {
            uint32_t v;
            memcpy(&v, p + 4 * i, 4);
            zeros += !(v << 1);
        }
    } else if (c->dtype == ACCEL_F64) {
        for (uint64_t i = 0; i < n; i++) {
            uint64_t v;
            memcpy(&v, p + 8 * i, 8);
            zeros += !(v << 1);
        }
    } else {
        for (uint64_t i = 0; i < n; i++) {
            uint16_t v;
            memcpy(&v, p + 2 * i, 2);
            zeros += !(v & 0x7fff);
        }
    }
    c->zeros += zeros;
    return ACCEL_OK;
}

static enum accel_err tensors_count(struct walk *w, const struct accel_model *m, bool count_zeros)
{
    struct accel_buffer buffer = {0};
    enum accel_err err = count_zeros ? accel_buffer_init(&buffer, 0) : ACCEL_OK;
    for (size_t i = 0; !err && i < m->n_tensor; i++) {
        const struct accel_tensor *t = m->tensor[i];
        struct entry *e = &w->entry[i];
        *e = (struct entry){.tensor = t, .is_float = accel_dtype_is_float(t->dtype)};
        e->unread = t->size && ((!t->data && !t->file) || !count_zeros);
        if (!e->is_float)
            continue;
        w->out->params += t->n;
        w->out->n_unread += e->unread;
        if (e->unread || !t->n)
            continue;
        struct counter c = {t->dtype, 0};
        err = accel_tensor_scan(t, &buffer, count, &c);
        if (err)
            err = accel_fail_in(err, "tensor '%.200s'", t->name ? t->name : "");
        e->zeros = c.zeros;
        w->out->nonzero += t->n - c.zeros;
    }
    accel_buffer_clear(&buffer);
    w->n_entry = m->n_tensor;
    if (!err && w->n_entry)
        qsort(w->entry, w->n_entry, sizeof *w->entry, by_address);
    return err;
}

/* A normalisation's scale and shift are learnt; its other constants were measured in training. */
static bool is_statistic(const struct accel_node *n, int slot)
{
    struct accel_weight w[4];
    int k = n->op && n->op->weights ? n->op->weights(n, w) : 0;
    for (int i = 0; i < k; i++)
        if (w[i].norm && slot && slot != w[i].slot && slot != w[i].bias_slot)
            return true;
    return false;
}

static enum accel_err node_add(struct walk *w, const struct accel_node *n)
{
    struct accel_summary *s = w->out;
    if (!ACCEL_GROW(s->row, s->cap, s->n_row + 1))
        return accel_fail_nomem();
    struct accel_node_summary *row = &s->row[s->n_row++];
    *row = (struct accel_node_summary){.node = n, .macs = -1};
    for (int i = 0; i < n->n_in; i++) {
        struct entry *e = n->in[i] && n->in[i]->tensor ? find(w, n->in[i]->tensor) : NULL;
        if (!e || e->seen)
            continue;
        e->seen = true;
        e->statistic = is_statistic(n, i);
        row->size += e->tensor->size;
        if (!e->is_float)
            continue;
        row->params += e->tensor->n;
        row->unread |= e->unread;
        row->nonzero += e->unread ? 0 : e->tensor->n - e->zeros;
    }
    for (size_t a = n->n_attr; a-- > 0;)
        for (size_t g = n->attr[a].graphs ? n->attr[a].n : 0; g-- > 0;) {
            if (!ACCEL_GROW(w->todo, w->todo_cap, w->n_todo + 1))
                return accel_fail_nomem();
            w->todo[w->n_todo++] = n->attr[a].graphs[g];
        }
    return ACCEL_OK;
}

/* One graph and all bodies in it. A body's nodes follow the node that holds it. */
static enum accel_err graph_add(struct walk *w, const struct accel_graph *top)
{
    struct frame {
        const struct accel_graph *g;
        size_t next;
        size_t bodies; /* length of todo when the frame began */
    } *frame = NULL;
    size_t n = 0, cap = 0;
    enum accel_err err = ACCEL_OK;
    if (!ACCEL_GROW(frame, cap, 1))
        return accel_fail_nomem();
    frame[n++] = (struct frame){top, 0, w->n_todo};
    while (!err && n) {
        struct frame *f = &frame[n - 1];
        if (w->n_todo > f->bodies) {
            const struct accel_graph *body = w->todo[--w->n_todo];
            if (ACCEL_GROW(frame, cap, n + 1))
                frame[n++] = (struct frame){body, 0, w->n_todo};
            else
                err = accel_fail_nomem();
        } else if (f->next < f->g->n_node) {
            err = node_add(w, f->g->node[f->next++]);
        } else {
            n--;
        }
    }
    accel_free(frame);
    return err;
}

/* Called while the batch is 1, or known. */
static void macs_fill(void *ctx, int64_t batch)
{
    struct accel_summary *s = ctx;
    for (size_t i = 0; i < s->n_row; i++) {
        int64_t macs = accel_node_macs(s->row[i].node);
        s->row[i].macs = macs > 0 ? macs / batch : macs;
    }
}

enum accel_err accel_summary_build(struct accel_summary *out, struct accel_model *m,
                                   bool count_zeros)
{
    *out = (struct accel_summary){0};
    struct walk w = {.out = out, .entry = accel_calloc(m->n_tensor, sizeof *w.entry)};
    if (!w.entry)
        return accel_fail_nomem();
    enum accel_err err;
    ACCEL_GOTO(err, tensors_count(&w, m, count_zeros));
    ACCEL_GOTO(err, graph_add(&w, m->graph));
    for (size_t i = 0; i < m->n_function; i++)
        ACCEL_GOTO(err, graph_add(&w, m->function[i]->body));
    out->trainable = out->params;
    for (size_t i = 0; i < w.n_entry; i++)
        if (w.entry[i].statistic && w.entry[i].is_float)
            out->trainable -= w.entry[i].tensor->n;
    ACCEL_GOTO(err, accel_model_macs_visit(&out->macs, m, macs_fill, out));
done:
    accel_free(w.entry);
    accel_free(w.todo);
    if (err)
        accel_summary_clear(out);
    return err;
}

void accel_summary_clear(struct accel_summary *s)
{
    accel_free(s->row);
    *s = (struct accel_summary){0};
}
