/* The rows come from the list that the build makes of the files op_*.c. They are found through a
 * fixed hash table of row numbers that the first call fills; it needs no heap, so finding cannot
 * fail for want of memory. */
#include "ops/ops.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define OP(name) extern const struct accel_op accel_op_##name;
#include "ops_list.inc"
#undef OP

#define OP(name) &accel_op_##name,
const struct accel_op *const accel_op_table[] = {
#include "ops_list.inc"
    NULL};
#undef OP

enum { COUNT = sizeof accel_op_table / sizeof *accel_op_table - 1, SLOTS = 2048 };
_Static_assert(COUNT < SLOTS / 2, "the hash table of operators is too small");

static uint16_t slot[SLOTS]; /* row + 1, 0: free */
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static uint32_t hash_of(const char *name, const char *domain)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    for (; *domain; domain++)
        h = (h ^ (unsigned char)*domain) * 16777619u;
    return h ^ h >> 15;
}

static void fill(void)
{
    for (int i = 0; i < COUNT; i++) {
        uint32_t k = hash_of(accel_op_table[i]->name, accel_op_table[i]->domain) % SLOTS;
        while (slot[k])
            k = (k + 1) % SLOTS;
        slot[k] = (uint16_t)(i + 1);
    }
}

int accel_op_count(void)
{
    return COUNT;
}

const struct accel_op *accel_op_find(const char *name, const char *domain)
{
    pthread_once(&filled, fill);
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (uint32_t k = hash_of(name, domain) % SLOTS; slot[k]; k = (k + 1) % SLOTS) {
        const struct accel_op *op = accel_op_table[slot[k] - 1];
        if (strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0)
            return op;
    }
    return NULL;
}
