/* fuzz_config.c - any bytes as a pruning config: the tree reader and the parser (libFuzzer). The
 * same bytes are a file, and a text given in place of one when they look like it. */
#include <string.h>

#include "base/config.h"
#include "prune/prune_config.h"
#include "tests/fuzz_input.h"

/* libfyaml 0.7.12 loses a block at some syntax errors; our own leaks still count. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so\n";
}

static void try_one(const char *source)
{
    struct accel_config_file *f = NULL;
    struct accel_prune_config *c = NULL;
    enum accel_err err = accel_config_read(&f, source);
    if (!err)
        err = accel_prune_config_parse(&c, f, NULL);
    if (err && !*accel_errmsg())
        abort(); /* an error without a text */
    accel_prune_config_free(c);
    accel_config_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_one(fuzz_input_path(data, size));
    if (size && (*data == '{' || *data == '[') && !memchr(data, 0, size)) {
        char *text = malloc(size + 1);
        if (!text)
            return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        try_one(text);
        free(text);
    }
    return 0;
}
