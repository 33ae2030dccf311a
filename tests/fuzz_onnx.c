/* fuzz_onnx.c - any bytes as a model: read, infer, prune, and write without a file (libFuzzer).
 *
 * Whatever the bytes, each step must end in success or in an error; sanitizers watch the rest. The
 * edits of a pruning run go along, so that the payloads are streamed too; then, on a model read
 * anew, channels are grouped, chosen and cut out. */
#include "base/config.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "prune/prune.h"
#include "tests/fuzz_input.h"

static const struct accel_prune_config *config(bool channels)
{
    static struct accel_prune_config *c[2];
    struct accel_config_file *f;
    if (!c[channels] &&
        (accel_config_read(&f, "[{\"op_types\": [\"default\"], \"sparse_ratio\": 0.5}]") ||
         accel_prune_config_parse(&c[channels], f, channels ? "l1_norm" : NULL)))
        abort();
    return c[channels];
}

static enum accel_err work(struct accel_model *m, bool channels)
{
    struct accel_prune_plan *plan = NULL;
    struct accel_onnx_written written;
    const struct accel_onnx_write_options how = {.external = ACCEL_EXTERNAL_AUTO};
    ACCEL_TRY(accel_model_infer(m));
    enum accel_err err = accel_prune_build(&plan, m, config(channels), &m->log);
    if (!err)
        err = accel_onnx_dry_write(&written, m, "/dev/shm/accel-fuzz-out.onnx", &how);
    if (!err)
        err = accel_prune_finish(plan, m);
    accel_prune_plan_free(plan);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct accel_onnx_read_options how = {.allow_linked_data = false};
    const char *path = fuzz_input_path(data, size);
    for (int channels = 0; channels < 2; channels++) {
        struct accel_model *m = NULL;
        if (accel_onnx_read(&m, path, &how))
            return 0;
        if (work(m, channels) && !*accel_errmsg())
            abort(); /* an error without a text */
        accel_model_free(m);
    }
    return 0;
}
