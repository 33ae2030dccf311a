/* One run of the writer, from the model as it is now to files in place.
 *
 *   1. plan: what changes in the tree of parts (metadata, tensors); inline first, and once more
 *      with a data file when the result would not fit into one protobuf message
 *   2. data file: the tensors that go there stream through their edits into a temporary file
 *   3. model: sizes from the leaves to the root, then one pass that copies and replaces
 *   4. check: the temporary file is scanned as any input would be
 *   5. ready: the caller may still say no
 *   6. commit: data file, then model, then old data files go
 *
 * A dry run does the same with nowhere to write to. */
#include "onnx/write_int.h"

#include "base/alloc.h"

#include <limits.h>
#include <string.h>

#define MODEL_MAX ((uint64_t)INT_MAX) /* what protobuf can read */

static bool key_is(const uint8_t *bytes, size_t n, const char *key)
{
    bool same = !*key; /* an absent field is the empty string */
    const uint8_t *at = bytes;
    for (struct accel_field f; accel_field_next(&f, &at, bytes + n);)
        if (f.number == ENTRY_KEY && f.wire_type == 2)
            same = (size_t)(f.end - f.body) == strlen(key) &&
                   memcmp(f.body, key, (size_t)(f.end - f.body)) == 0;
    return same;
}

/* Sets one metadata entry: in its place when the key is there, at the end otherwise. */
static enum accel_err meta_set(struct accel_write *w, const struct accel_property *prop)
{
    struct accel_part *found = NULL;
    struct accel_str s = {0};
    accel_put_string(&s, ENTRY_KEY, prop->key);
    accel_put_string(&s, ENTRY_VALUE, prop->value);
    enum accel_err err = ACCEL_OK;
    for (struct accel_part *c = w->x->root->child; c && !err; c = c->next) {
        if (c->kind != ACCEL_PART_META || c->removed)
            continue;
        uint8_t *bytes;
        size_t n;
        err = accel_part_load(&bytes, &n, w, c);
        if (err)
            break;
        if (key_is(bytes, n, prop->key)) {
            if (!found)
                accel_put_others(&s, bytes, n, 1u << ENTRY_KEY | 1u << ENTRY_VALUE);
            c->removed = found != NULL;
            found = found ? found : c;
        }
        accel_free(bytes);
    }
    if (!err && !found &&
        !(found = accel_part_add(w, w->x->root, ACCEL_PART_META, MODEL_METADATA_PROPS)))
        err = accel_fail_nomem();
    if (!err)
        err = accel_part_set(w, found, &s);
    accel_str_clear(&s);
    return err;
}

static enum accel_err plan(struct accel_write *w)
{
    if (w->x->file)
        accel_tree_reset(w->x);
    else
        ACCEL_TRY(accel_tree_build(w));
    for (size_t i = 0; i < w->opt->n_meta; i++)
        ACCEL_TRY(meta_set(w, &w->opt->meta[i]));
    if (w->x->file)
        ACCEL_TRY(accel_graph_plan(w));
    ACCEL_TRY(accel_tensors_plan(w));
    size_t n_edit = 0;
    for (size_t i = 0; i < w->m->n_tensor; i++)
        n_edit += w->m->tensor[i]->edit || w->m->tensor[i]->changed;
    if (n_edit != w->n_edited)
        return accel_fail(ACCEL_ENOSUP, "%zu of %zu changed tensors have no place in the file",
                          n_edit - w->n_edited, n_edit);
    return accel_external_point(w);
}

/* Plans, with a data file if asked for or needed. */
static enum accel_err plan_within_limit(struct accel_write *w)
{
    enum accel_external how = w->opt->external;
    w->external = how == ACCEL_EXTERNAL_YES || (how == ACCEL_EXTERNAL_AUTO && w->x->had_external);
    ACCEL_TRY(plan(w));
    uint64_t size = accel_tree_measure(w);
    if (size > MODEL_MAX && how == ACCEL_EXTERNAL_AUTO && !w->external) {
        w->external = true;
        ACCEL_TRY(plan(w));
        size = accel_tree_measure(w);
    }
    if (size > MODEL_MAX)
        return accel_fail(w->external ? ACCEL_ENOSUP : ACCEL_EARG,
                          "the model file would have %llu bytes, more than the %llu that protobuf "
                          "can read%s",
                          (unsigned long long)size, (unsigned long long)MODEL_MAX,
                          w->external ? ""
                                      : "; let its tensors go to a data file (--external-data)");
    return ACCEL_OK;
}

/* The finished temporary file read as an input would be. */
static enum accel_err check_temp(struct accel_write *w, uint64_t size)
{
    struct accel_onnx x = {0};
    enum accel_err err = accel_file_open(&x.file, accel_out_temp_path(w->out));
    if (!err && x.file->size != size)
        err = accel_fail(ACCEL_EIO, "it has %llu bytes instead of %llu",
                         (unsigned long long)x.file->size, (unsigned long long)size);
    if (!err)
        err = accel_wire_scan(&x);
    accel_file_close(x.file);
    accel_arena_clear(&x.arena);
    accel_free(x.window);
    if (err && err != ACCEL_ENOMEM)
        err = accel_fail_in(ACCEL_EIO, "'%s' failed its check after writing", w->path);
    return err;
}

static enum accel_err write_files(struct accel_write *w, uint64_t size,
                                  const struct accel_onnx_written *written)
{
    ACCEL_TRY(accel_out_open(&w->out, w->path));
    ACCEL_TRY(accel_tree_emit(w));
    ACCEL_TRY(accel_out_finish(w->out));
    ACCEL_TRY(check_temp(w, size));
    if (w->opt->ready)
        ACCEL_TRY(w->opt->ready(w->opt->ready_ctx, written));
    ACCEL_TRY(accel_external_commit(w));
    enum accel_err err = accel_out_commit(w->out);
    if (err)
        accel_external_undo(w);
    else
        accel_old_data_remove(w);
    return err;
}

static enum accel_err run(struct accel_onnx_written *out, struct accel_write *w)
{
    ACCEL_TRY(accel_buffer_init(&w->buffer, 0));
    ACCEL_TRY(plan_within_limit(w));
    if (!w->dry || w->n_placed)
        ACCEL_TRY(accel_old_data_find(w));
    if (w->n_placed) {
        ACCEL_TRY(accel_external_write(w));
        ACCEL_TRY(accel_external_point(w));
    }
    uint64_t size = accel_tree_measure(w);
    *out = (struct accel_onnx_written){.size = size + w->data_size};
    return w->dry ? accel_tree_emit(w) : write_files(w, size, out);
}

static enum accel_err write_model(struct accel_onnx_written *out, struct accel_model *m,
                                  const char *path, const struct accel_onnx_write_options *opt,
                                  bool dry)
{
    struct accel_onnx in_memory = {0};
    struct accel_write w = {.m = m, .x = m->origin, .opt = opt, .path = path, .dry = dry};
    if (!w.x)
        w.x = &in_memory;
    enum accel_err err = run(out, &w);
    accel_out_close(w.out);
    accel_external_clear(&w);
    accel_buffer_clear(&w.buffer);
    if (w.x->file)
        accel_tree_reset(w.x);
    accel_arena_clear(&w.arena);
    return err;
}

enum accel_err accel_onnx_write(struct accel_onnx_written *out, struct accel_model *m,
                                const char *path, const struct accel_onnx_write_options *opt)
{
    return write_model(out, m, path, opt, false);
}

enum accel_err accel_onnx_dry_write(struct accel_onnx_written *out, struct accel_model *m,
                                    const char *path, const struct accel_onnx_write_options *opt)
{
    return write_model(out, m, path, opt, true);
}
