/* net.c - the public C interface: a network is a model, a config and a plan behind one handle.
 *
 * Thin on purpose: it calls the rooms in the order the programs do and turns codes into statuses.
 * The handle is opaque and its functions take plain C types, so that the library may change inside
 * without its users being compiled anew. */
#include <accel/accel.h>

#include "api/summary.h"
#include "base/alloc.h"
#include "base/config.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "prune/prune.h"

struct accel_net {
    struct accel_model *model;
    struct accel_config_file *file;
    struct accel_prune_config *config;
    struct accel_prune_plan *plan;
    bool written; /* the plan's numbers are complete */
    bool broken;  /* a cut failed half way: the model is no model any more */
};

const char *accel_version(void)
{
    return ACCEL_VERSION;
}

const char *accel_error(void)
{
    return accel_errmsg();
}

/* Errors of the model file get its name in front, as the programs show them. */
static int status_of(enum accel_err err, const char *path)
{
    if (err == ACCEL_EMODEL || err == ACCEL_ESHAPE || err == ACCEL_ENOSUP)
        err = accel_fail_in(err, "%.1000s", path);
    return accel_err_status(err);
}

int accel_net_read(struct accel_net **out, const char *path)
{
    struct accel_net *net = accel_calloc(1, sizeof *net);
    *out = NULL;
    if (!net)
        return accel_err_status(accel_fail_nomem());
    enum accel_err err = accel_onnx_read(&net->model, path, &(struct accel_onnx_read_options){0});
    if (!err)
        err = accel_model_infer(net->model);
    if (err)
        accel_net_free(net);
    else
        *out = net;
    return status_of(err, path);
}

int accel_net_bind_dim(struct accel_net *net, const char *name, int64_t size)
{
    enum accel_err err = accel_model_bind_dim(net->model, name, size);
    if (!err)
        err = accel_model_infer(net->model);
    return status_of(err, net->model->path);
}

int accel_net_count(struct accel_net_numbers *out, struct accel_net *net)
{
    struct accel_summary s;
    enum accel_err err = accel_summary_build(&s, net->model, true);
    if (err)
        return status_of(err, net->model->path);
    *out = (struct accel_net_numbers){.bytes = net->model->size,
                                      .nodes = s.n_row,
                                      .params = s.params,
                                      .trainable = s.trainable,
                                      .nonzero = s.nonzero,
                                      .macs = s.macs};
    accel_summary_clear(&s);
    return 0;
}

/* What needs a data set is a matter of the command: here there is none. */
static enum accel_err check_config(const struct accel_prune_config *c)
{
    const struct accel_config *k = c->repair ? c->repair : c->bn_reestimate;
    if (c->by_data)
        return accel_fail(ACCEL_EARG, "pruner '%s' is for the command accel-prune", c->pruner);
    if (!k && c->target)
        k = accel_config_find(c->target, "accuracy_drop");
    return k ? accel_config_fail(k, true, "%s is for the command accel-prune", k->key) : ACCEL_OK;
}

int accel_net_prune(struct accel_net *net, const char *config)
{
    if (net->plan)
        return accel_err_status(accel_fail(ACCEL_EARG, "this network has its config already"));
    struct accel_config_file *file = NULL;
    struct accel_prune_config *parsed = NULL;
    enum accel_err err = accel_config_read(&file, config);
    if (!err)
        err = accel_prune_config_parse(&parsed, file, NULL);
    if (!err)
        err = check_config(parsed);
    if (!err)
        err = accel_prune_choose(&net->plan, net->model, parsed, NULL, &net->model->log);
    if (!err && net->plan->channels) {
        err = accel_prune_cut(net->plan, net->model);
        net->broken = err != ACCEL_OK;
    }
    if (err && !net->broken) {
        accel_prune_config_free(parsed);
        accel_config_free(file);
        return status_of(err, net->model->path);
    }
    net->file = file;
    net->config = parsed; /* also behind a cut that failed: what is half changed refers to them */
    return err ? status_of(err, net->model->path) : 0;
}

static enum accel_err finish(void *ctx, const struct accel_onnx_written *written)
{
    struct accel_net *net = ctx;
    (void)written;
    return accel_prune_finish(net->plan, net->model);
}

int accel_net_write(struct accel_net *net, const char *path)
{
    const struct accel_property meta[] = {{"accel.version", ACCEL_VERSION},
                                          {"accel.config", net->file ? net->file->text : ""}};
    const struct accel_onnx_write_options how = {
        .meta = meta,
        .n_meta = net->file ? 2 : 1,
        .ready = net->plan ? finish : NULL,
        .ready_ctx = net,
    };
    struct accel_onnx_written written;
    if (net->broken)
        return accel_err_status(
            accel_fail(ACCEL_EARG, "pruning this network failed: read it again"));
    enum accel_err err = accel_onnx_write(&written, net->model, path, &how);
    net->written = net->written || !err;
    return status_of(err, path);
}

void accel_net_free(struct accel_net *net)
{
    if (!net)
        return;
    accel_prune_plan_free(net->plan);
    accel_prune_config_free(net->config);
    accel_config_free(net->file);
    accel_model_free(net->model);
    accel_free(net);
}

int accel_net_weight_get(struct accel_net_weight *out, const struct accel_net *net, size_t index)
{
    if (!net->plan || !net->written || index >= (size_t)net->plan->n_row)
        return 0;
    const struct accel_prune_row *r = &net->plan->row[index];
    *out = (struct accel_net_weight){
        .name = r->target->name,
        .node = r->target->node ? r->target->node->label : "",
        .reason = r->reason,
        .pruned = r->pruned,
        .requested = r->requested,
        .achieved = r->achieved,
        .elements = r->target->tensor->n,
        .zeros = r->zeros_after,
    };
    return 1;
}

uint64_t accel_net_params(const struct accel_net *net)
{
    return net->written && net->plan ? net->plan->totals.params : 0;
}

uint64_t accel_net_nonzero(const struct accel_net *net)
{
    return net->written && net->plan ? net->plan->totals.nonzero_after : 0;
}

const char *accel_net_warning(const struct accel_net *net, size_t index)
{
    return index < net->model->log.n ? net->model->log.text[index] : NULL;
}
