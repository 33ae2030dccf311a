/* Reading a model: the scan proves the file's form and finds its parts; then each part's message is
 * unpacked once, turned into the C graph and forgotten. */
#include "onnx/read_int.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

#define FIRST_IR_WITH_OPSETS 3

void accel_onnx_free(void *origin)
{
    struct accel_onnx *x = origin;
    if (!x)
        return;
    for (size_t i = 0; i < x->n_data; i++)
        accel_file_close(x->data[i]->file);
    accel_free(x->data);
    accel_file_close(x->file);
    accel_free(x->window);
    accel_arena_clear(&x->arena);
    accel_free(x);
}

static enum accel_err read_header(struct accel_read *r)
{
    Onnx__Model *msg;
    struct accel_model *m = r->m;
    ACCEL_TRY(accel_read_message(&msg, r, r->x->root, &onnx__model__descriptor));
    if (!msg->has_ir_version || msg->ir_version < 1)
        return accel_fail(ACCEL_EMODEL, "not an ONNX model: it has no ir_version");
    m->ir_version = msg->ir_version;
    const char *name = msg->producer_name ? msg->producer_name : "";
    const char *version = msg->producer_version ? msg->producer_version : "";
    size_t size = strlen(name) + strlen(version) + 2;
    char *producer = ACCEL_NEW(&m->arena, char, size);
    if (!producer)
        return accel_fail_nomem();
    snprintf(producer, size, "%s%s%s", name, *name && *version ? " " : "", version);
    m->producer = producer;
    return ACCEL_OK;
}

static enum accel_err read_imports(struct accel_read *r)
{
    struct accel_model *m = r->m;
    ACCEL_TRY(accel_read_opsets(&m->opset, &m->n_opset, r, r->x->root));
    if (!m->n_opset && m->ir_version < FIRST_IR_WITH_OPSETS) {
        m->opset[0] = (struct accel_opset){"", 1}; /* an arena gives room for one at least */
        m->n_opset = 1;
    }
    m->graph->opset = accel_graph_opset(m->graph, "");
    return ACCEL_OK;
}

static enum accel_err read_properties(struct accel_read *r)
{
    struct accel_model *m = r->m;
    size_t n = 0;
    for (struct accel_part *c = r->x->root->child; c; c = c->next)
        n += c->kind == ACCEL_PART_META;
    m->meta = ACCEL_NEW(&m->arena, struct accel_property, n);
    if (!m->meta)
        return accel_fail_nomem();
    for (struct accel_part *c = r->x->root->child; c; c = c->next) {
        Onnx__StringStringEntry *msg;
        if (c->kind != ACCEL_PART_META)
            continue;
        ACCEL_TRY(accel_read_message(&msg, r, c, &onnx__string_string_entry__descriptor));
        ACCEL_TRY(accel_read_string(&m->meta[m->n_meta].key, r, msg->key));
        ACCEL_TRY(accel_read_string(&m->meta[m->n_meta].value, r, msg->value));
        m->n_meta++;
    }
    return ACCEL_OK;
}

static enum accel_err read_all(struct accel_read *r)
{
    struct accel_part *graph = NULL;
    ACCEL_TRY(accel_wire_scan(r->x));
    ACCEL_TRY(read_header(r));
    ACCEL_TRY(read_imports(r));
    ACCEL_TRY(read_properties(r));
    for (struct accel_part *c = r->x->root->child; c; c = c->next)
        if (c->kind == ACCEL_PART_GRAPH)
            graph = c;
        else if (c->field == 20)
            accel_warn(&r->m->log, "training_info is kept as it is, its graphs are not looked at");
    if (!graph)
        return accel_fail(ACCEL_EMODEL, "not an ONNX model: it holds no graph");
    ACCEL_TRY(accel_read_functions(r));
    ACCEL_TRY(accel_read_graph(r->m->graph, r, graph));
    return accel_read_labels(r->m);
}

static enum accel_err open_model(struct accel_read *r, const char *path)
{
    struct accel_model *m = r->m;
    struct accel_onnx *x = accel_calloc(1, sizeof *x);
    if (!x)
        return accel_fail_nomem();
    m->origin = r->x = x;
    m->free_origin = accel_onnx_free;
    m->path = accel_arena_strndup(&m->arena, path, strlen(path));
    if (!m->path)
        return accel_fail_nomem();
    ACCEL_TRY(accel_file_open(&x->file, path));
    m->size = x->file->size;
    return ACCEL_OK;
}

enum accel_err accel_onnx_read(struct accel_model **out, const char *path,
                               const struct accel_onnx_read_options *opt)
{
    struct accel_read r = {.opt = opt ? *opt : (struct accel_onnx_read_options){0}};
    *out = NULL;
    ACCEL_TRY(accel_model_new(&r.m, 0));
    enum accel_err err = open_model(&r, path);
    if (!err)
        err = read_all(&r);
    accel_read_message_clear(&r);
    accel_map_clear(&r.function);
    if (err)
        accel_model_free(r.m);
    else
        *out = r.m;
    return err;
}
