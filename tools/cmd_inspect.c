/* accel-inspect: one row per node. Rows are sorted before they become text, so that every format
 * shows the same order. Shapes are shown with their symbols; MACs are those of one sample. */
#include "api/summary.h"
#include "base/alloc.h"
#include "base/json.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "onnx/onnx.h"
#include "tools/escape.h"
#include "tools/table.h"
#include "tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct accel_options, field)

static const struct accel_option options[] = {
    {"sort", 0, ACCEL_OPTION_TEXT, AT(sort), "COLUMN",
     "node, op, output, params, macs, bytes, sparsity or dtype; numbers largest first", 0, 0},
    {"format", 0, ACCEL_OPTION_CHOICE, AT(format), "table|csv|json|md", "default: table", 0, 0},
    {"allow-linked-data", 0, ACCEL_OPTION_FLAG, AT(allow_linked_data), NULL,
     "follow the symbolic links of model caches to external data", 0, 0},
    {0},
};
static const char *const unused[] = {"output", "config", "set", "dry-run", "report", NULL};

static const struct accel_column columns[] = {
    {"NODE", false, true},     {"OP", false, false},    {"OUTPUT", false, true},
    {"PARAMS", true, false},   {"MACS", true, false},   {"BYTES", true, false},
    {"SPARSITY", true, false}, {"DTYPE", false, false}, {0}};
enum { NODE, OP, OUTPUT, PARAMS, MACS, BYTES, SPARSITY, DTYPE, N_COLUMNS };

/* A row and what it is sorted by. */
struct item {
    const struct accel_node_summary *s;
    double number;
    char *text; /* accel_free() */
    bool by_text;
};

/* Dims of all outputs: "1x32x28x28", several separated by blanks, many by "+3". */
static const char *outputs_text(char *buf, size_t size, const struct accel_node *n)
{
    const struct accel_value *first = NULL;
    int more = 0;
    for (int i = 0; i < n->n_out; i++) {
        if (first && n->out[i])
            more++;
        else if (n->out[i])
            first = n->out[i];
    }
    if (!first)
        return strcpy(buf, "");
    accel_shape_text(&first->shape, &n->graph->model->symbols, buf, size - 16);
    if (more)
        snprintf(buf + strlen(buf), 16, " +%d", more);
    return buf;
}

static const char *dtype_text(const struct accel_value *v)
{
    const struct accel_dtype_info *d = v ? accel_dtype_find((int)v->dtype) : NULL;
    return !d || v->dtype == ACCEL_UNDEFINED ? "?" : d->name;
}

static const struct accel_value *first_output(const struct accel_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i])
            return n->out[i];
    return NULL;
}

/* NAN: there is nothing to be sparse, or its data were not there. */
static double sparsity(const struct accel_node_summary *s)
{
    return s->params && !s->unread ? 1 - (double)s->nonzero / (double)s->params : NAN;
}

static enum accel_err find_column(int *out, const char *name)
{
    struct accel_near near = accel_near_begin(name);
    for (*out = 0; *out < N_COLUMNS; (*out)++) {
        if (!strcasecmp(columns[*out].title, name))
            return ACCEL_OK;
        accel_near_try(&near, columns[*out].title);
    }
    if (!strcasecmp(name, "shape")) {
        *out = OUTPUT;
        return ACCEL_OK;
    }
    return accel_fail(ACCEL_EARG,
                      "option '--sort': no column '%.100s'%s%s%s; there are node, op, output, "
                      "params, macs, bytes, sparsity, dtype",
                      name, near.best ? ", did you mean '" : "", near.best ? near.best : "",
                      near.best ? "'?" : "");
}

static enum accel_err item_set_key(struct item *it, int column)
{
    const struct accel_node *n = it->s->node;
    char buf[512];
    const char *text = column == NODE     ? n->label
                       : column == OP     ? n->op_type
                       : column == OUTPUT ? outputs_text(buf, sizeof buf, n)
                                          : dtype_text(first_output(n));
    it->number = column == PARAMS     ? (double)it->s->params
                 : column == MACS     ? (double)it->s->macs
                 : column == BYTES    ? (double)it->s->size
                 : column == SPARSITY ? sparsity(it->s)
                                      : 0;
    if (isnan(it->number))
        it->number = -1;
    it->by_text = !columns[column].right;
    if (!it->by_text)
        return ACCEL_OK;
    it->text = accel_calloc(strlen(text) + 1, 1);
    if (!it->text)
        return accel_fail_nomem();
    strcpy(it->text, text);
    return ACCEL_OK;
}

static int compare(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int d =
        x->by_text ? strcmp(x->text, y->text) : (x->number < y->number) - (x->number > y->number);
    return d ? d : (x->s > y->s) - (x->s < y->s); /* rows stand in file order */
}

static enum accel_err items_build(struct item **out, const struct accel_summary *s, int column)
{
    struct item *it = accel_calloc(s->n_row, sizeof *it);
    *out = it;
    if (!it)
        return accel_fail_nomem();
    for (size_t i = 0; i < s->n_row; i++) {
        it[i].s = &s->row[i];
        if (column >= 0)
            ACCEL_TRY(item_set_key(&it[i], column));
    }
    if (column >= 0 && s->n_row)
        qsort(it, s->n_row, sizeof *it, compare);
    return ACCEL_OK;
}

static void items_free(struct item *it, size_t n)
{
    for (size_t i = 0; it && i < n; i++)
        accel_free(it[i].text);
    accel_free(it);
}

static void add_number(struct accel_table *t, int64_t n, bool plain)
{
    char buf[32];
    if (plain && n < 0)
        accel_table_add(t, "%s", "");
    else if (plain)
        accel_table_add(t, "%lld", (long long)n);
    else
        accel_table_add(t, "%s", accel_text_count(buf, n));
}

/* plain: for machines, without separators and percent signs. */
static void table_fill(struct accel_table *t, const struct item *it, size_t n, bool plain)
{
    char buf[512];
    for (size_t i = 0; i < n; i++) {
        const struct accel_node_summary *s = it[i].s;
        accel_table_add(t, "%s", s->node->label);
        accel_table_add(t, "%s", s->node->op_type);
        accel_table_add(t, "%s", outputs_text(buf, sizeof buf, s->node));
        add_number(t, (int64_t)s->params, plain);
        add_number(t, s->macs, plain);
        add_number(t, (int64_t)s->size, plain);
        if (!plain)
            accel_table_add(t, "%s", accel_text_share(buf, sparsity(s)));
        else if (isnan(sparsity(s)))
            accel_table_add(t, "%s", "");
        else
            accel_table_add(t, "%.6g", sparsity(s));
        accel_table_add(t, "%s", dtype_text(first_output(s->node)));
    }
}

static void add_ends(struct accel_str *out, const char *what, const struct accel_model *m,
                     struct accel_value *const *v, size_t n)
{
    char buf[512];
    struct accel_str raw = {0};
    for (size_t i = 0; i < n; i++)
        if (!v[i]->tensor || !v[i]->is_input) {
            accel_str_addf(&raw, "%s '%s' %s %s", raw.len ? "," : what, v[i]->name,
                           dtype_text(v[i]),
                           accel_shape_text(&v[i]->shape, &m->symbols, buf, sizeof buf));
        }
    if (raw.len) {
        accel_escape_terminal(out, accel_str_get(&raw));
        accel_str_add(out, "\n");
    }
    out->failed |= raw.failed;
    accel_str_clear(&raw);
}

static void add_head(struct accel_str *out, const struct accel_model *m)
{
    struct accel_str raw = {0};
    accel_str_addf(&raw, "%s: IR version %lld", m->path, (long long)m->ir_version);
    for (size_t i = 0; i < m->n_opset; i++)
        accel_str_addf(&raw, ", %s%sopset %lld", m->opset[i].domain, *m->opset[i].domain ? " " : "",
                       (long long)m->opset[i].version);
    if (*m->producer)
        accel_str_addf(&raw, ", from %s", m->producer);
    accel_escape_terminal(out, accel_str_get(&raw));
    accel_str_add(out, "\n");
    out->failed |= raw.failed;
    accel_str_clear(&raw);
    add_ends(out, "inputs: ", m, m->graph->input, m->graph->n_input);
    add_ends(out, "outputs:", m, m->graph->output, m->graph->n_output);
    accel_str_add(out, "\n");
}

static void add_totals(struct accel_str *out, const struct accel_model *m,
                       const struct accel_summary *s)
{
    char a[32], b[32], c[32];
    accel_str_addf(out, "\n%zu node%s, %s parameters", s->n_row, s->n_row == 1 ? "" : "s",
                   accel_text_count(a, (int64_t)s->params));
    if (s->trainable != s->params)
        accel_str_addf(out, " (%s trainable)", accel_text_count(b, (int64_t)s->trainable));
    if (s->n_unread)
        accel_str_addf(out, ", data of %llu tensors not there", (unsigned long long)s->n_unread);
    else if (s->params)
        accel_str_addf(out, ", %s of them zero",
                       accel_text_share(b, 1 - (double)s->nonzero / (double)s->params));
    accel_str_addf(out, "\n%s bytes (%s), %s MACs for one sample\n",
                   accel_text_count(a, (int64_t)m->size), accel_text_size(b, m->size),
                   accel_text_count(c, s->macs));
}

/* Head, table and totals for people. */
static enum accel_err show_table(struct accel_job *job, const struct accel_model *m,
                                 const struct accel_summary *s, const struct item *it,
                                 bool markdown)
{
    struct accel_table t;
    accel_table_init(&t, columns);
    table_fill(&t, it, s->n_row, false);
    add_head(&job->out, m);
    if (markdown)
        accel_table_markdown(&job->out, &t);
    else
        accel_table_text(&job->out, &t, job->width, job->color);
    add_totals(&job->out, m, s);
    accel_table_clear(&t);
    return ACCEL_OK;
}

static enum accel_err show_csv(struct accel_job *job, const struct accel_summary *s,
                               const struct item *it)
{
    struct accel_table t;
    accel_table_init(&t, columns);
    table_fill(&t, it, s->n_row, true);
    accel_table_csv(&job->out, &t, job->width > 0);
    accel_table_clear(&t);
    return ACCEL_OK;
}

/* Numbers, names of symbols, null for what has no name; null for an unknown rank. */
static void json_shape(struct accel_json *j, const char *key, const struct accel_model *m,
                       const struct accel_shape *sh)
{
    if (sh->rank < 0) {
        accel_json_null(j, key);
        return;
    }
    accel_json_array(j, key);
    for (int i = 0; i < sh->rank; i++) {
        struct accel_dim d = sh->dim[i];
        if (d.n >= 0)
            accel_json_int(j, NULL, d.n);
        else
            accel_json_text(j, NULL, d.sym >= 0 ? m->symbols.at[d.sym].name : NULL);
    }
    accel_json_end(j, ']');
}

static void json_ends(struct accel_json *j, const char *key, const struct accel_model *m,
                      struct accel_value *const *v, size_t n)
{
    accel_json_array(j, key);
    for (size_t i = 0; i < n; i++) {
        if (v[i]->tensor && v[i]->is_input)
            continue;
        accel_json_object(j, NULL);
        accel_json_text(j, "name", v[i]->name);
        accel_json_text(j, "dtype", v[i]->dtype == ACCEL_UNDEFINED ? NULL : dtype_text(v[i]));
        json_shape(j, "shape", m, &v[i]->shape);
        accel_json_end(j, '}');
    }
    accel_json_end(j, ']');
}

static void json_macs(struct accel_json *j, int64_t macs)
{
    if (macs < 0)
        accel_json_null(j, "macs");
    else
        accel_json_int(j, "macs", macs);
}

static void json_model(struct accel_json *j, const struct accel_model *m,
                       const struct accel_summary *s)
{
    accel_json_object(j, "model");
    accel_json_text(j, "path", m->path);
    accel_json_uint(j, "bytes", m->size);
    accel_json_int(j, "ir_version", m->ir_version);
    accel_json_object(j, "opsets");
    for (size_t i = 0; i < m->n_opset; i++)
        accel_json_int(j, m->opset[i].domain, m->opset[i].version);
    accel_json_end(j, '}');
    accel_json_text(j, "producer", m->producer);
    accel_json_uint(j, "params", s->params);
    accel_json_uint(j, "trainable", s->trainable);
    if (s->n_unread)
        accel_json_null(j, "nonzero");
    else
        accel_json_uint(j, "nonzero", s->nonzero);
    json_macs(j, s->macs);
    json_ends(j, "inputs", m, m->graph->input, m->graph->n_input);
    json_ends(j, "outputs", m, m->graph->output, m->graph->n_output);
    accel_json_end(j, '}');
}

static void json_names(struct accel_json *j, const char *key, struct accel_value *const *v, int n)
{
    accel_json_array(j, key);
    for (int i = 0; i < n; i++)
        accel_json_text(j, NULL, v[i] ? v[i]->name : "");
    accel_json_end(j, ']');
}

static void json_node(struct accel_json *j, const struct accel_model *m,
                      const struct accel_node_summary *s)
{
    const struct accel_node *n = s->node;
    const struct accel_op *op = n->op;
    accel_json_object(j, NULL);
    accel_json_text(j, "name", n->label);
    accel_json_text(j, "op_type", n->op_type);
    accel_json_text(j, "domain", n->domain);
    accel_json_text(j, "module", n->module);
    json_names(j, "inputs", n->in, n->n_in);
    json_names(j, "outputs", n->out, n->n_out);
    accel_json_array(j, "output_shapes");
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i])
            json_shape(j, NULL, m, &n->out[i]->shape);
        else
            accel_json_null(j, NULL);
    accel_json_end(j, ']');
    accel_json_uint(j, "params", s->params);
    json_macs(j, s->macs);
    accel_json_uint(j, "bytes", s->size);
    if (s->unread)
        accel_json_null(j, "sparsity");
    else
        accel_json_number(j, "sparsity", s->params ? sparsity(s) : 0);
    accel_json_object(j, "supported");
    accel_json_bool(j, "run", op && op->forward);
    accel_json_bool(j, "train", op && op->backward);
    accel_json_bool(j, "prune", op && (op->links || op->weights));
    accel_json_bool(j, "quant", false); /* no quantizer yet */
    accel_json_end(j, '}');
    accel_json_end(j, '}');
}

static enum accel_err show_json(struct accel_job *job, const struct accel_model *m,
                                const struct accel_summary *s, const struct item *it)
{
    struct accel_json j = {.out = job->out};
    accel_json_object(&j, NULL);
    accel_json_text(&j, "command", "inspect");
    json_model(&j, m, s);
    accel_json_array(&j, "nodes");
    for (size_t i = 0; i < s->n_row; i++)
        json_node(&j, m, it[i].s);
    accel_json_end(&j, ']');
    accel_json_array(&j, "warnings");
    for (size_t i = 0; i < m->log.n; i++)
        accel_json_text(&j, NULL, m->log.text[i]);
    accel_json_end(&j, ']');
    accel_json_end(&j, '}');
    accel_str_add(&j.out, "\n");
    job->out = j.out;
    return ACCEL_OK;
}

static enum accel_err inspect(struct accel_job *job, int column)
{
    const char *path = job->opt.arg.at[0], *format = job->opt.format;
    struct accel_model *m = NULL;
    struct accel_summary s = {0};
    struct item *it = NULL;
    const struct accel_onnx_read_options how = {.allow_linked_data = job->opt.allow_linked_data,
                                                .skip_data = true};
    enum accel_err err;
    ACCEL_GOTO(err, accel_onnx_read(&m, path, &how));
    ACCEL_GOTO(err, accel_job_bind(job, m));
    ACCEL_GOTO(err, accel_model_infer(m));
    ACCEL_GOTO(err, accel_summary_build(&s, m, true));
    ACCEL_GOTO(err, items_build(&it, &s, column));
    accel_job_warn(job, &m->log);
    if (format && !strcmp(format, "json"))
        err = show_json(job, m, &s, it);
    else if (format && !strcmp(format, "csv"))
        err = show_csv(job, &s, it);
    else
        err = show_table(job, m, &s, it, format && !strcmp(format, "md"));
done:
    if (err && err != ACCEL_EARG)
        err = accel_fail_in(err, "%.1000s", path);
    items_free(it, s.n_row);
    accel_summary_clear(&s);
    accel_model_free(m);
    return err;
}

static enum accel_err run(struct accel_job *job)
{
    int column = -1;
    if (job->opt.json) {
        if (job->opt.format && strcmp(job->opt.format, "json"))
            return accel_fail(ACCEL_EARG, "--json and --format %s contradict each other",
                              job->opt.format);
        job->opt.format = "json";
    } else if (job->opt.format && !strcmp(job->opt.format, "json")) {
        job->opt.json = true;
    }
    if (job->opt.sort)
        ACCEL_TRY(find_column(&column, job->opt.sort));
    return inspect(job, column);
}

const struct accel_command accel_command_inspect = {
    .name = "inspect",
    .usage = "MODEL [options]",
    .summary = "Shows the nodes of an ONNX model: operator, output shape, parameters, MACs, bytes, "
               "sparsity.",
    .options = options,
    .unused = unused,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
