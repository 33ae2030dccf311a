/* fuzz_input.h - a fuzzer's input as a file in memory, for readers that want a path. */
#ifndef ACCEL_TESTS_FUZZ_INPUT_H
#define ACCEL_TESTS_FUZZ_INPUT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The entry point libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the bytes to one file of this process, in a folder of its own below TMPDIR (which whoever
 * starts the fuzzer removes: libFuzzer ends without a word), and returns its path. */
static const char *fuzz_input_path(const uint8_t *data, size_t size)
{
    static char folder[256], path[280];
    if (!*path) {
        const char *below = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%.200s/accel-fuzz-XXXXXX", below ? below : "/dev/shm");
        if (!mkdtemp(folder))
            abort();
        snprintf(path, sizeof path, "%s/input", folder);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd))
        abort();
    return path;
}

#endif
