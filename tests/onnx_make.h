/* onnx_make.h - model files for tests, put together field by field, so that a test decides about
 * every byte. */
#ifndef ACCEL_TESTS_ONNX_MAKE_H
#define ACCEL_TESTS_ONNX_MAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx/write_int.h"

/* Closes the message `c` as field `field` of `s`. */
static inline void make_message(struct accel_str *s, int field, struct accel_str *c)
{
    accel_put_bytes(s, field, accel_str_get(c), c->len);
    accel_str_clear(c);
}

/* dims, data_type, name; then the payload as `data_field`; then a doc string and a field from the
 * future. d1 < 0: one dim. */
static inline void make_tensor(struct accel_str *s, int field, const char *name, int dtype,
                               int64_t d0, int64_t d1, int data_field, const void *payload,
                               size_t n)
{
    struct accel_str t = {0};
    accel_put_int(&t, TENSOR_DIMS, d0);
    if (d1 >= 0)
        accel_put_int(&t, TENSOR_DIMS, d1);
    accel_put_int(&t, TENSOR_DATA_TYPE, dtype);
    accel_put_string(&t, TENSOR_NAME, name);
    accel_put_string(&t, 12, "doc");
    accel_put_int(&t, 1999, 7);
    if (data_field)
        accel_put_bytes(&t, data_field, payload, n);
    make_message(s, field, &t);
}

static inline void make_entry(struct accel_str *s, int field, const char *key, const char *value)
{
    struct accel_str e = {0};
    accel_put_string(&e, ENTRY_KEY, key);
    accel_put_string(&e, ENTRY_VALUE, value);
    make_message(s, field, &e);
}

static inline void make_value(struct accel_str *s, int field, const char *name)
{
    struct accel_str v = {0}, type = {0}, tensor = {0};
    accel_put_int(&tensor, 1, 1);
    accel_put_string(&tensor, 2, "");
    make_message(&type, 1, &tensor);
    accel_put_string(&v, 1, name);
    make_message(&v, 2, &type);
    make_message(s, field, &v);
}

/* A model of IR 8 and opset 17 whose graph is y = Identity(x) and holds `tensors`, the fields of
 * GraphProto that a test adds (cleared). */
static inline struct accel_str make_model(struct accel_str *tensors)
{
    struct accel_str m = {0}, g = {0}, n = {0}, o = {0};
    accel_put_string(&n, NODE_INPUT, "x");
    accel_put_string(&n, NODE_OUTPUT, "y");
    accel_put_string(&n, NODE_OP_TYPE, "Identity");
    accel_put_int(&n, 1998, 77);
    make_message(&g, GRAPH_NODE, &n);
    accel_put_string(&g, GRAPH_NAME, "g");
    accel_str_addn(&g, accel_str_get(tensors), tensors->len);
    accel_str_clear(tensors);
    make_value(&g, GRAPH_INPUT, "x");
    make_value(&g, GRAPH_OUTPUT, "y");
    accel_put_int(&m, MODEL_IR_VERSION, 8);
    make_message(&m, MODEL_GRAPH, &g);
    accel_put_string(&o, 1, "");
    accel_put_int(&o, 2, 17);
    make_message(&m, MODEL_OPSET_IMPORT, &o);
    accel_put_string(&m, 1999, "from the future");
    return m;
}

/* A folder of one's own. */
static char make_folder_path[64];

static inline void make_folder(void)
{
    strcpy(make_folder_path, "/tmp/accel_test_XXXXXX");
    if (!mkdtemp(make_folder_path))
        abort();
}

static inline void remove_folder(void)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", make_folder_path);
    if (system(cmd))
        abort();
}

/* A path in it; eight at a time. */
static inline const char *in_folder(const char *name)
{
    static char path[8][512];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", make_folder_path, name);
    return path[turn];
}

static inline void save_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || (n && fwrite(bytes, 1, n, f) != n) || fclose(f))
        abort();
}

/* The file's bytes; len 0 when there is none. */
static inline struct accel_str load_file(const char *path)
{
    struct accel_str s = {0};
    char block[65536];
    FILE *f = fopen(path, "rb");
    for (size_t n; f && (n = fread(block, 1, sizeof block, f)) > 0;)
        accel_str_addn(&s, block, n);
    if (f)
        fclose(f);
    return s;
}

/* Saves a model and clears it. */
static inline const char *save_model(const char *name, struct accel_str m)
{
    const char *path = in_folder(name);
    save_file(path, m.at, m.len);
    accel_str_clear(&m);
    return path;
}

/* The names in the folder, sorted, one space behind each. */
static inline const char *folder_list(void)
{
    static char text[2048];
    char cmd[128];
    snprintf(cmd, sizeof cmd, "ls -A '%s' | sort | tr '\\n' ' '", make_folder_path);
    FILE *p = popen(cmd, "r");
    size_t n = p ? fread(text, 1, sizeof text - 1, p) : 0;
    text[n] = '\0';
    if (p)
        pclose(p);
    return text;
}

/* An edit that zeroes all elements but each tenth; f32, f16 and the like by width. */
struct make_edit {
    struct accel_edit edit;
    size_t width;
};

static inline enum accel_err make_edit_prepare(struct accel_edit *e, const struct accel_tensor *t,
                                               const void *whole, void *scratch, size_t size)
{
    (void)whole, (void)scratch, (void)size;
    ((struct make_edit *)e)->width = t->size / t->n;
    e->prepared = true;
    return ACCEL_OK;
}

static inline enum accel_err make_edit_apply(struct accel_edit *e, uint64_t first, uint64_t count,
                                             void *elem)
{
    size_t width = ((struct make_edit *)e)->width;
    for (uint64_t i = 0; i < count; i++)
        if ((first + i) % 10 != 9)
            memset((char *)elem + i * width, 0, width);
    return ACCEL_OK;
}

static inline void make_edit_free(struct accel_edit *e)
{
    free(e);
}

static inline void make_edits(struct accel_model *m)
{
    static const struct accel_edit_ops ops = {make_edit_prepare, make_edit_apply, make_edit_free};
    for (size_t i = 0; i < m->n_tensor; i++) {
        struct make_edit *e = calloc(1, sizeof *e);
        if (!e || !m->tensor[i]->n)
            abort();
        e->edit.ops = &ops;
        e->edit.grain = 1;
        accel_tensor_set_edit(m->tensor[i], &e->edit);
    }
}

#endif
