/* Nodes have few attributes: a list is searched from the front. Setters serve models built in
 * memory; they grow the list by copying it, since an arena cannot give room back. */
#include "graph/attr.h"

#include <string.h>

const struct accel_attr *accel_attr_find(const struct accel_node *n, const char *name)
{
    for (size_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, name) == 0)
            return &n->attr[i];
    return NULL;
}

const char *accel_attr_kind_name(enum accel_attr_kind kind)
{
    static const char *const name[] = {"undefined",      "a float", "an int", "a string",
                                       "a tensor",       "a graph", "floats", "ints",
                                       "strings",        "tensors", "graphs", "a sparse tensor",
                                       "sparse tensors", "a type",  "types"};
    return (size_t)kind < sizeof name / sizeof *name ? name[kind] : "of an unknown kind";
}

/* The attribute when it is there and of this kind; *out NULL when it is absent or still a
 * reference. */
static enum accel_err typed(const struct accel_attr **out, const struct accel_node *n,
                            const char *name, enum accel_attr_kind kind)
{
    const struct accel_attr *a = accel_attr_find(n, name);
    *out = a && !a->ref ? a : NULL;
    if (*out && a->kind != kind)
        return accel_fail(ACCEL_EMODEL, "attribute '%s' is %s, must be %s", name,
                          accel_attr_kind_name(a->kind), accel_attr_kind_name(kind));
    return ACCEL_OK;
}

enum accel_err accel_attr_int(int64_t *out, const struct accel_node *n, const char *name,
                              int64_t otherwise)
{
    const struct accel_attr *a;
    ACCEL_TRY(typed(&a, n, name, ACCEL_ATTR_INT));
    *out = a ? a->i : otherwise;
    return ACCEL_OK;
}

enum accel_err accel_attr_float(float *out, const struct accel_node *n, const char *name,
                                float otherwise)
{
    const struct accel_attr *a;
    ACCEL_TRY(typed(&a, n, name, ACCEL_ATTR_FLOAT));
    *out = a ? a->f : otherwise;
    return ACCEL_OK;
}

enum accel_err accel_attr_string(const char **out, const struct accel_node *n, const char *name,
                                 const char *otherwise)
{
    const struct accel_attr *a;
    ACCEL_TRY(typed(&a, n, name, ACCEL_ATTR_STRING));
    *out = a ? a->s.at : otherwise;
    return ACCEL_OK;
}

enum accel_err accel_attr_ints(const int64_t **out, size_t *count, const struct accel_node *n,
                               const char *name)
{
    const struct accel_attr *a;
    ACCEL_TRY(typed(&a, n, name, ACCEL_ATTR_INTS));
    *out = a ? a->ints : NULL;
    *count = a ? a->n : 0;
    return ACCEL_OK;
}

enum accel_err accel_attr_floats(const float **out, size_t *count, const struct accel_node *n,
                                 const char *name)
{
    const struct accel_attr *a;
    ACCEL_TRY(typed(&a, n, name, ACCEL_ATTR_FLOATS));
    *out = a ? a->floats : NULL;
    *count = a ? a->n : 0;
    return ACCEL_OK;
}

static enum accel_err set(struct accel_node *n, const struct accel_attr *value)
{
    struct accel_attr *old = (struct accel_attr *)accel_attr_find(n, value->name);
    if (old) {
        const char *name = old->name;
        *old = *value;
        old->name = name;
        return ACCEL_OK;
    }
    struct accel_arena *a = &n->graph->model->arena;
    struct accel_attr *list = ACCEL_NEW(a, struct accel_attr, n->n_attr + 1);
    char *name = accel_arena_strndup(a, value->name, strlen(value->name));
    if (!list || !name)
        return accel_fail_nomem();
    if (n->n_attr)
        memcpy(list, n->attr, n->n_attr * sizeof *list);
    list[n->n_attr] = *value;
    list[n->n_attr++].name = name;
    n->attr = list;
    return ACCEL_OK;
}

enum accel_err accel_attr_set_int(struct accel_node *n, const char *name, int64_t v)
{
    return set(n, &(struct accel_attr){.name = name, .kind = ACCEL_ATTR_INT, .i = v});
}

enum accel_err accel_attr_set_float(struct accel_node *n, const char *name, float v)
{
    return set(n, &(struct accel_attr){.name = name, .kind = ACCEL_ATTR_FLOAT, .f = v});
}

enum accel_err accel_attr_set_string(struct accel_node *n, const char *name, const char *v)
{
    size_t len = strlen(v);
    char *copy = accel_arena_strndup(&n->graph->model->arena, v, len);
    if (!copy)
        return accel_fail_nomem();
    return set(n, &(struct accel_attr){.name = name, .kind = ACCEL_ATTR_STRING, .s = {copy, len}});
}

enum accel_err accel_attr_set_ints(struct accel_node *n, const char *name, const int64_t *v,
                                   size_t count)
{
    int64_t *copy = ACCEL_NEW(&n->graph->model->arena, int64_t, count);
    if (!copy)
        return accel_fail_nomem();
    if (count)
        memcpy(copy, v, count * sizeof *v);
    return set(
        n, &(struct accel_attr){.name = name, .kind = ACCEL_ATTR_INTS, .n = count, .ints = copy});
}

/* The list is replaced, not edited: it may be that of an origin that others still see. */
enum accel_err accel_attr_drop(struct accel_node *n, const char *name)
{
    size_t kept = 0;
    if (!accel_attr_find(n, name))
        return ACCEL_OK;
    struct accel_attr *list = ACCEL_NEW(&n->graph->model->arena, struct accel_attr, n->n_attr);
    if (!list)
        return accel_fail_nomem();
    for (size_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, name) != 0)
            list[kept++] = n->attr[i];
    n->attr = list;
    n->n_attr = kept;
    return ACCEL_OK;
}
