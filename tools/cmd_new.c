/* cmd_new.c - accel-new: writes one of the built-in example networks with fresh
 * weights. The networks are rows of a table (new_models.c); here is only the
 * command around them. */
#include "base/json.h"
#include "onnx/onnx.h"
#include "tools/new_draft.h"
#include "tools/table.h"
#include "tools/tools.h"

#include <string.h>

static const struct accel_network *find_network(const char *name)
{
    for (const struct accel_network *w = accel_network_table; w->name; w++)
        if (!strcmp(w->name, name))
            return w;
    return NULL;
}

static enum accel_err unknown_network(const char *name)
{
    struct accel_near near = accel_near_begin(name);
    struct accel_str all = {0};
    for (const struct accel_network *w = accel_network_table; w->name; w++) {
        accel_near_try(&near, w->name);
        accel_str_addf(&all, "%s%s", all.len ? ", " : "", w->name);
    }
    if (near.best)
        accel_fail(ACCEL_EARG, "unknown network '%.100s', did you mean '%s'?", name, near.best);
    else
        accel_fail(ACCEL_EARG, "unknown network '%.100s', known are %s", name, accel_str_get(&all));
    accel_str_clear(&all);
    return ACCEL_EARG;
}

/* All numbers, or only those that training would change: without batch norm's mean and variance
 * and the scalars of formulas. The latter are the published counts. */
static int64_t count_params(const struct accel_model *m, bool trainable)
{
    int64_t n = 0;
    for (size_t i = 0; i < m->n_tensor; i++) {
        const struct accel_tensor *t = m->tensor[i];
        if (accel_dtype_is_float(t->dtype) &&
            (!trainable || (t->rank && !strstr(t->name, ".running_"))))
            n += (int64_t)t->n;
    }
    return n;
}

static enum accel_err write_network(struct accel_onnx_written *written, struct accel_model *m,
                                    const struct accel_options *opt)
{
    const struct accel_property version = {"accel.version", ACCEL_VERSION};
    const struct accel_onnx_write_options how = {.meta = &version, .n_meta = 1};
    return opt->dry_run ? accel_onnx_dry_write(written, m, opt->output, &how)
                        : accel_onnx_write(written, m, opt->output, &how);
}

static enum accel_err show(struct accel_job *job, const char *name, const struct accel_model *m,
                           const struct accel_onnx_written *written)
{
    const struct accel_options *opt = &job->opt;
    if (!opt->json) {
        char params[32], size[32];
        accel_str_addf(&job->out, "%s: %s, %s parameters, %s%s\n", opt->output, name,
                       accel_text_count(params, count_params(m, true)),
                       accel_text_size(size, written->size),
                       opt->dry_run ? " (dry run: not written)" : "");
        return ACCEL_OK;
    }
    struct accel_json j = {0};
    accel_json_object(&j, NULL);
    accel_json_text(&j, "command", "new");
    accel_json_text(&j, "version", ACCEL_VERSION);
    accel_json_bool(&j, "dry_run", opt->dry_run);
    accel_json_text(&j, "network", name);
    accel_json_int(&j, "seed", opt->seed);
    accel_json_object(&j, "output");
    accel_json_text(&j, "path", opt->dry_run ? NULL : opt->output);
    accel_json_uint(&j, "bytes", written->size);
    accel_json_int(&j, "params", count_params(m, false));
    accel_json_int(&j, "trainable", count_params(m, true));
    accel_json_end(&j, '}');
    accel_json_end(&j, '}');
    accel_str_add(&j.out, "\n");
    bool failed = j.out.failed;
    accel_str_add(&job->out, accel_str_get(&j.out));
    accel_json_clear(&j);
    return failed ? accel_fail_nomem() : ACCEL_OK;
}

static enum accel_err run(struct accel_job *job)
{
    const struct accel_options *opt = &job->opt;
    const char *name = opt->arg.at[0];
    const struct accel_network *w = find_network(name);
    if (!w)
        return unknown_network(name);
    if (!opt->output)
        return accel_fail(ACCEL_EARG, "-o OUT is missing: the file to write the network to");
    if (opt->features && strcmp(name, "linear"))
        return accel_fail(ACCEL_EARG, "option '--features' is for linear, not for %s", name);
    struct accel_draft draft = {.bias = !opt->no_bias, .features = opt->features};
    struct accel_onnx_written written;
    ACCEL_TRY(accel_network_build(&draft, w, (uint64_t)opt->seed));
    enum accel_err err = write_network(&written, draft.m, opt);
    if (!err)
        err = show(job, name, draft.m, &written);
    accel_model_free(draft.m);
    return err;
}

static const struct accel_option options[] = {
    {"no-bias", 0, ACCEL_OPTION_FLAG, offsetof(struct accel_options, no_bias), NULL,
     "convolutions and fully connected layers without biases", 0, 0},
    {"features", 0, ACCEL_OPTION_NUMBER, offsetof(struct accel_options, features), "N",
     "inputs of the network linear (default 8)", 1, 1000000},
    {0},
};
static const char *const unused[] = {"config", "set",         "report", "threads",
                                     "dim",    "input-shape", NULL};

const struct accel_command accel_command_new = {
    .name = "new",
    .usage = "NAME -o OUT [options]",
    .summary = "Writes an example network with fresh weights: linear, mlp, "
               "mlp4, fashion-cnn, "
               "resnet20, resnet18, resnet50, mobilenet-v2, densenet121, unet, encoder or gpt.",
    .options = options,
    .unused = unused,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
