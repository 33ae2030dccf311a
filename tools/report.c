/* JSON and table are two views of the same rows. Zeros and removed parameters are kept apart
 * everywhere: writing zeros makes no file smaller. */
#include "tools/report.h"

#include "tools/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *accel_report_node(const struct accel_prune_row *row)
{
    return row->target->node ? row->target->node->label : "";
}

const char *accel_report_shape(char *buf, size_t size, int rank, const int64_t *dim)
{
    size_t len = (size_t)snprintf(buf, size, "%s", rank ? "" : "scalar");
    for (int i = 0; i < rank && len < size; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%lld", i ? "x" : "", (long long)dim[i]);
    return buf;
}

static bool is_smaller(const struct accel_prune_row *row)
{
    const struct accel_tensor *t = row->target->tensor;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != row->dim[i])
            return true;
    return false;
}

const char *accel_report_row_shape(char *buf, size_t size, const struct accel_prune_row *row)
{
    const struct accel_tensor *t = row->target->tensor;
    accel_report_shape(buf, size, t->rank, row->dim);
    size_t len = strlen(buf);
    if (is_smaller(row) && len + 5 < size) {
        strcpy(buf + len, " -> ");
        accel_report_shape(buf + len + 4, size - len - 4, t->rank, t->dim);
    }
    return buf;
}

const char *accel_report_note(const struct accel_report *r)
{
    if (r->totals.nonzero_after >= r->totals.nonzero_before ||
        r->totals.params < r->totals.params_before)
        return "";
    if (r->size_after < r->size_before)
        return "0 parameters were removed: weights of mostly zeros\nare stored in sparse form, "
               "which runtimes expand.";
    return "Zeros alone make no file smaller and most runtimes no faster:\n"
           "0 parameters were removed.";
}

static void json_side(struct accel_json *j, const char *key, const struct accel_report *r,
                      bool after)
{
    int64_t macs = after ? r->macs_after : r->macs_before;
    accel_json_object(j, key);
    accel_json_text(j, "path", after ? r->output : r->input);
    accel_json_uint(j, "bytes", after ? r->size_after : r->size_before);
    accel_json_uint(j, "params", after ? r->totals.params : r->totals.params_before);
    accel_json_uint(j, "trainable", after ? r->totals.trainable : r->totals.trainable_before);
    accel_json_uint(j, "nonzero", after ? r->totals.nonzero_after : r->totals.nonzero_before);
    if (macs < 0)
        accel_json_null(j, "macs");
    else
        accel_json_int(j, "macs", macs);
    accel_json_end(j, '}');
}

static void json_ints(struct accel_json *j, const char *key, int64_t n, const int64_t *at)
{
    accel_json_array(j, key);
    for (int64_t i = 0; i < n; i++)
        accel_json_int(j, NULL, at[i]);
    accel_json_end(j, ']');
}

/* What survived of each axis that lost channels, as indices into the old one. */
static void json_kept(struct accel_json *j, const struct accel_prune_row *row)
{
    char axis[16];
    accel_json_object(j, "kept");
    for (int i = 0; i < row->target->tensor->rank; i++) {
        if (!row->cut[i].kept)
            continue;
        snprintf(axis, sizeof axis, "%d", i);
        json_ints(j, axis, row->cut[i].now, row->cut[i].kept);
    }
    accel_json_end(j, '}');
}

static void json_row(struct accel_json *j, const struct accel_prune_row *row)
{
    const struct accel_target *t = row->target;
    accel_json_object(j, NULL);
    accel_json_text(j, "name", t->name);
    accel_json_text(j, "node", accel_report_node(row));
    accel_json_text(j, "op_type", t->node ? t->node->op_type : "");
    json_ints(j, "shape", t->tensor->rank, row->dim);
    json_ints(j, "new_shape", t->tensor->rank, t->tensor->dim);
    accel_json_text(j, "status", row->pruned ? "pruned" : "kept");
    accel_json_text(j, "reason", row->reason);
    if (row->repaired)
        accel_json_bool(j, "repaired", true);
    accel_json_number(j, "requested", row->requested);
    accel_json_number(j, "achieved", row->achieved);
    accel_json_uint(j, "zeros", row->zeros_after);
    accel_json_uint(j, "zeros_before", row->zeros_before);
    accel_json_number(j, "threshold", row->threshold);
    if (row->cut)
        json_kept(j, row);
    accel_json_end(j, '}');
}

void accel_report_json(struct accel_json *j, const struct accel_report *r)
{
    accel_json_object(j, NULL);
    accel_json_text(j, "command", "prune");
    accel_json_text(j, "version", ACCEL_VERSION);
    accel_json_bool(j, "dry_run", !r->output);
    json_side(j, "input", r, false);
    json_side(j, "output", r, true);
    accel_json_text(j, "pruner", r->pruner);
    accel_json_array(j, "weights");
    for (int i = 0; i < r->n_row; i++)
        json_row(j, &r->row[i]);
    accel_json_end(j, ']');
    if (r->check) {
        accel_json_object(j, "check");
        if (r->check->samples)
            accel_json_int(j, "samples", r->check->samples);
        accel_differences_json(j, r->check);
        accel_json_end(j, '}');
    }
    if (r->latency) {
        accel_json_object(j, "latency");
        accel_json_number(j, "before_ms", r->latency->before_ms);
        accel_json_number(j, "after_ms", r->latency->after_ms);
        accel_json_end(j, '}');
    }
    if (r->repair)
        accel_repair_json(j, r->repair);
    if (r->groups && r->coupled)
        accel_report_groups_json(j, r->coupled);
    accel_json_array(j, "warnings");
    for (size_t i = 0; i < r->log->n; i++)
        accel_json_text(j, NULL, r->log->text[i]);
    accel_json_end(j, ']');
    accel_json_end(j, '}');
    accel_str_add(&j->out, "\n");
}

static void table_rows(struct accel_str *out, const struct accel_report *r, int width, bool color)
{
    static const struct accel_column columns[] = {
        {"WEIGHT", false, true}, {"NODE", false, true},  {"OP", false, false},
        {"SHAPE", false, false}, {"ASKED", true, false}, {"DONE", true, false},
        {"ZEROS", true, false},  {"", false, true},      {0}};
    struct accel_table t;
    char text[256];
    accel_table_init(&t, columns);
    for (int i = 0; i < r->n_row; i++) {
        const struct accel_prune_row *row = &r->row[i];
        const struct accel_target *g = row->target;
        accel_table_add(&t, "%s", g->name);
        accel_table_add(&t, "%s", accel_report_node(row));
        accel_table_add(&t, "%s", g->node ? g->node->op_type : "");
        accel_table_add(&t, "%s", accel_report_row_shape(text, sizeof text, row));
        accel_table_add(&t, "%s", accel_text_share(text, row->requested));
        accel_table_add(&t, "%s", row->pruned ? accel_text_share(text, row->achieved) : "-");
        accel_table_add(&t, "%s", accel_text_count(text, (int64_t)row->zeros_after));
        accel_table_add(&t, "%s",
                        row->pruned && !strcmp(row->reason, "selected") ? "" : row->reason);
    }
    accel_table_text(out, &t, width, color);
    accel_table_clear(&t);
}

static void table_totals(struct accel_str *out, const struct accel_report *r, bool color)
{
    static const struct accel_column columns[] = {
        {"", false, false}, {"BEFORE", true, false}, {"AFTER", true, false}, {0}};
    struct accel_table t;
    char text[32];
    accel_table_init(&t, columns);
    const struct {
        const char *what;
        int64_t before, after;
    } line[] = {
        {"parameters", (int64_t)r->totals.params_before, (int64_t)r->totals.params},
        {"  of them not zero", (int64_t)r->totals.nonzero_before, (int64_t)r->totals.nonzero_after},
        {"bytes", (int64_t)r->size_before, (int64_t)r->size_after},
        {"MACs of one sample", r->macs_before, r->macs_after},
    };
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        accel_table_add(&t, "%s", line[i].what);
        accel_table_add(&t, "%s", accel_text_count(text, line[i].before));
        accel_table_add(&t, "%s", accel_text_count(text, line[i].after));
    }
    accel_table_text(out, &t, 0, color);
    accel_table_clear(&t);
}

void accel_report_table(struct accel_str *out, const struct accel_report *r, int width, bool color)
{
    int pruned = 0;
    for (int i = 0; i < r->n_row; i++)
        pruned += r->row[i].pruned;
    if (r->n_row) {
        table_rows(out, r, width, color);
        accel_str_add(out, "\n");
    }
    table_totals(out, r, color);
    accel_str_addf(out, "\n%s: %d of %d weights pruned", r->pruner, pruned, r->n_row);
    const char *note = accel_report_note(r);
    accel_str_addf(out, ".%s%s\n", *note ? " " : "", note);
    if (r->latency)
        accel_str_addf(out,
                       "One run takes %.3g ms of CPU time, %.3g ms before: %.2f times as fast.\n",
                       r->latency->after_ms, r->latency->before_ms,
                       r->latency->before_ms / r->latency->after_ms);
    if (r->repair)
        accel_repair_text(out, r->repair, width, color);
    if (r->groups && r->coupled)
        accel_report_groups_text(out, r->coupled, width, color);
    if (r->check) {
        accel_str_add(out, "\nOld and new model on the same inputs:\n");
        accel_differences_text(out, r->check, width, color);
    }
}
