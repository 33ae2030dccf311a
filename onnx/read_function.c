/* Local functions: all are made before any body is read, since they may call each other in any
 * order. Calls must not go in circles, which is proven by taking away, again and again, functions
 * that nobody left calls. */
#include "onnx/read_int.h"

#include "base/alloc.h"
#include "base/str.h"

#include <limits.h>
#include <string.h>

#define FUNCTION_VALUE_INFO 12

static const char *plain(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static enum accel_err key_of(struct accel_str *key, const char *domain, const char *name,
                             const char *overload)
{
    accel_str_addf(key, "%zu:%s:%zu:%s:%s", strlen(plain(domain)), plain(domain), strlen(name),
                   name, overload);
    return key->failed ? accel_fail_nomem() : ACCEL_OK;
}

enum accel_err accel_read_find_function(struct accel_function **out, const struct accel_read *r,
                                        const char *domain, const char *name, const char *overload)
{
    *out = NULL;
    if (!r->function.n)
        return ACCEL_OK;
    struct accel_str key = {0};
    enum accel_err err = key_of(&key, domain, name, overload);
    if (!err)
        *out = accel_map_find(&r->function, accel_str_get(&key));
    accel_str_clear(&key);
    return err;
}

enum accel_err accel_read_opsets(struct accel_opset **out, size_t *n, struct accel_read *r,
                                 struct accel_part *p)
{
    size_t parts = 0;
    for (struct accel_part *c = p->child; c; c = c->next)
        parts += c->kind == ACCEL_PART_OPSET;
    struct accel_map seen = {0};
    struct accel_opset *list = ACCEL_NEW(&r->m->arena, struct accel_opset, parts);
    enum accel_err err = list ? ACCEL_OK : accel_fail_nomem();
    *n = 0;
    for (struct accel_part *c = p->child; c && !err; c = c->next) {
        Onnx__OperatorSetId *msg;
        if (c->kind != ACCEL_PART_OPSET)
            continue;
        ACCEL_GOTO(err, accel_read_message(&msg, r, c, &onnx__operator_set_id__descriptor));
        struct accel_opset *o = &list[*n];
        ACCEL_GOTO(err, accel_read_string(&o->domain, r, msg->domain));
        o->version = msg->version;
        if (o->version < 1 || o->version > INT_MAX) {
            err = accel_fail(ACCEL_EMODEL, "opset %lld of domain '%.200s' cannot be",
                             (long long)o->version, o->domain);
            goto done;
        }
        const struct accel_opset *same = accel_map_find(&seen, plain(o->domain));
        if (same && same->version != o->version) {
            err = accel_fail(ACCEL_EMODEL, "domain '%.200s' is imported twice, as %lld and %lld",
                             o->domain, (long long)same->version, (long long)o->version);
            goto done;
        }
        if (!accel_map_put(&seen, plain(o->domain), o)) {
            err = accel_fail_nomem();
            goto done;
        }
        ++*n;
    }
    *out = list;
done:
    accel_map_clear(&seen);
    return err;
}

/* Name, imports and an empty body. */
static enum accel_err declare(struct accel_function *f, struct accel_read *r, struct accel_part *p)
{
    Onnx__Function *msg;
    struct accel_str key = {0};
    ACCEL_TRY(accel_read_message(&msg, r, p, &onnx__function__descriptor));
    ACCEL_TRY(accel_read_string(&f->name, r, msg->name));
    ACCEL_TRY(accel_read_string(&f->domain, r, msg->domain));
    ACCEL_TRY(accel_read_string(&f->overload, r, msg->overload));
    if (!*f->name)
        return accel_fail(ACCEL_EMODEL, "a function has no name");
    enum accel_err err = key_of(&key, f->domain, f->name, f->overload);
    const char *copy = err ? NULL : accel_arena_strndup(&r->m->arena, key.at, key.len);
    accel_str_clear(&key);
    if (!copy)
        return accel_fail_nomem();
    if (accel_map_find(&r->function, copy))
        return accel_fail(ACCEL_EMODEL, "function '%.200s' comes twice", f->name);
    if (!accel_map_put(&r->function, copy, f))
        return accel_fail_nomem();
    ACCEL_TRY(accel_read_opsets(&f->opset, &f->n_opset, r, p));
    ACCEL_TRY(accel_graph_new(&f->body, r->m, NULL));
    f->body->function = f;
    f->body->name = f->name;
    f->body->origin = p;
    f->body->opset = accel_graph_opset(f->body, "");
    p->graph = f->body;
    return ACCEL_OK;
}

static enum accel_err read_inputs(struct accel_graph *g, struct accel_read *r,
                                  const Onnx__Function *msg)
{
    g->input = ACCEL_NEW(&r->m->arena, struct accel_value *, msg->n_input);
    if (!g->input)
        return accel_fail_nomem();
    for (size_t i = 0; i < msg->n_input; i++) {
        if (!*msg->input[i])
            return accel_fail(ACCEL_EMODEL, "input %zu has no name", i);
        ACCEL_TRY(accel_value_new(&g->input[i], g, msg->input[i]));
        g->input[i]->is_input = true;
        g->n_input++;
    }
    return ACCEL_OK;
}

static enum accel_err read_outputs(struct accel_graph *g, struct accel_read *r,
                                   const Onnx__Function *msg)
{
    g->output = ACCEL_NEW(&r->m->arena, struct accel_value *, msg->n_output);
    if (!g->output)
        return accel_fail_nomem();
    for (size_t i = 0; i < msg->n_output; i++) {
        struct accel_value *v = accel_map_find(&g->by_name, msg->output[i]);
        if (!v)
            return accel_fail(ACCEL_EMODEL, "output '%.200s' is produced by no node",
                              msg->output[i]);
        v->is_output = true;
        g->output[g->n_output++] = v;
    }
    return ACCEL_OK;
}

static enum accel_err read_body(struct accel_graph *g, struct accel_read *r, struct accel_part *p)
{
    Onnx__Function *msg;
    ACCEL_TRY(accel_read_message(&msg, r, p, &onnx__function__descriptor));
    ACCEL_TRY(read_inputs(g, r, msg));
    ACCEL_TRY(accel_read_nodes(g, r, p));
    ACCEL_TRY(accel_read_message(&msg, r, p, &onnx__function__descriptor));
    ACCEL_TRY(read_outputs(g, r, msg));
    return accel_read_value_infos(g, r, p, FUNCTION_VALUE_INFO);
}

/* A call from one function's body to another function. */
struct call {
    size_t to;
    struct call *next;
};

static const struct accel_function *caller_of(const struct accel_graph *g)
{
    while (g->parent)
        g = g->parent;
    return g->function;
}

static enum accel_err list_calls(struct call **from, size_t *n_to, struct accel_arena *a,
                                 const struct accel_model *m, const struct accel_function *all)
{
    for (size_t i = 0; i < m->n_all_graph; i++) {
        const struct accel_graph *g = m->all_graph[i];
        const struct accel_function *f = caller_of(g);
        for (size_t k = 0; f && k < g->n_node; k++) {
            if (!g->node[k]->function)
                continue;
            struct call *c = ACCEL_NEW(a, struct call, 1);
            if (!c)
                return accel_fail_nomem();
            *c = (struct call){(size_t)(g->node[k]->function - all), from[f - all]};
            from[f - all] = c;
            n_to[c->to]++;
        }
    }
    return ACCEL_OK;
}

static enum accel_err check_calls(const struct accel_model *m, const struct accel_function *all)
{
    struct accel_arena a = {0};
    size_t n = m->n_function, n_ready = 0;
    struct call **from = ACCEL_NEW(&a, struct call *, n);
    size_t *n_to = ACCEL_NEW(&a, size_t, n), *ready = ACCEL_NEW(&a, size_t, n);
    enum accel_err err =
        from && n_to && ready ? list_calls(from, n_to, &a, m, all) : accel_fail_nomem();
    for (size_t i = 0; i < n && !err; i++)
        if (!n_to[i])
            ready[n_ready++] = i;
    for (size_t i = 0; i < n_ready; i++)
        for (const struct call *c = from[ready[i]]; c; c = c->next)
            if (!--n_to[c->to])
                ready[n_ready++] = c->to;
    for (size_t i = 0; i < n && !err; i++)
        if (n_to[i])
            err = accel_fail(ACCEL_EMODEL, "function '%.200s' is called by itself or in a circle",
                             all[i].name);
    accel_arena_clear(&a);
    return err;
}

enum accel_err accel_read_functions(struct accel_read *r)
{
    struct accel_model *m = r->m;
    size_t n = 0;
    for (struct accel_part *c = r->x->root->child; c; c = c->next)
        n += c->kind == ACCEL_PART_FUNCTION;
    struct accel_function *all = ACCEL_NEW(&m->arena, struct accel_function, n);
    m->function = ACCEL_NEW(&m->arena, struct accel_function *, n);
    if (!all || !m->function)
        return accel_fail_nomem();
    for (struct accel_part *c = r->x->root->child; c; c = c->next)
        if (c->kind == ACCEL_PART_FUNCTION) {
            ACCEL_TRY(declare(&all[m->n_function], r, c));
            m->function[m->n_function] = &all[m->n_function];
            m->n_function++;
        }
    for (size_t i = 0; i < m->n_function; i++) {
        enum accel_err err = read_body(all[i].body, r, all[i].body->origin);
        if (err)
            return accel_fail_in(err, "function '%.200s'", all[i].name);
    }
    return n ? check_calls(m, all) : ACCEL_OK;
}
