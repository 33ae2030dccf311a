/* fuzz_onnx.c - any bytes as a model: read, infer, prune, and write without a file (libFuzzer).
 *
 * Whatever the bytes, each step must end in success or in an error; sanitizers watch the rest. The
 * edits of a pruning run go along, so that the payloads are streamed too. */
#include "base/config.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "prune/prune.h"
#include "tests/fuzz_input.h"

static const struct accel_prune_config *config(void)
{
    static struct accel_prune_config *c;
    struct accel_config_file *f;
    if (!c && (accel_config_read(&f, "[{\"op_types\": [\"default\"], \"sparse_ratio\": 0.3}]") ||
               accel_prune_config_parse(&c, f, NULL)))
        abort();
    return c;
}

static enum accel_err work(struct accel_model *m)
{
    struct accel_prune_plan *plan = NULL;
    struct accel_onnx_written written;
    const struct accel_onnx_write_options how = {.external = ACCEL_EXTERNAL_AUTO};
    ACCEL_TRY(accel_model_infer(m));
    enum accel_err err = accel_prune_build(&plan, m, config(), &m->log);
    if (!err)
        err = accel_onnx_dry_write(&written, m, "/dev/shm/accel-fuzz-out.onnx", &how);
    if (!err)
        err = accel_prune_finish(plan, m);
    accel_prune_plan_free(plan);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct accel_model *m = NULL;
    const struct accel_onnx_read_options how = {.allow_linked_data = false};
    if (!accel_onnx_read(&m, fuzz_input_path(data, size), &how) && work(m) && !*accel_errmsg())
        abort(); /* an error without a text */
    accel_model_free(m);
    return 0;
}
