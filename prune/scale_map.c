/* Every form is one: a scale for each block of a grid, the blocks being as long as the axis where
 * there is one scale along it. */
#include "prune/scale_map.h"

#include "base/alloc.h"

enum accel_err accel_scale_map_init(struct accel_scale_map *m, const struct accel_tensor *t,
                                    const struct accel_tensor *scale, int axis)
{
    uint64_t stride = 1;
    *m = (struct accel_scale_map){.rank = t->rank, .dim = t->dim, .one = scale->n == 1};
    if (m->one)
        return ACCEL_OK;
    m->block = accel_calloc((size_t)t->rank, sizeof *m->block);
    m->stride = accel_calloc((size_t)t->rank, sizeof *m->stride);
    if (!m->block || !m->stride) {
        accel_scale_map_clear(m);
        return accel_fail_nomem();
    }
    for (int a = t->rank - 1; a >= 0; a--) {
        int64_t n = scale->rank == t->rank && t->rank > 1 ? scale->dim[a]
                    : a == axis                           ? (int64_t)scale->n
                                                          : 1;
        if (n < 1 || (t->dim[a] && n > t->dim[a])) {
            accel_scale_map_clear(m);
            return accel_fail(ACCEL_ENOSUP, "scale '%.200s' does not fit '%.200s'", scale->name,
                              t->name);
        }
        m->block[a] = t->dim[a] / n + (t->dim[a] % n != 0);
        m->stride[a] = stride;
        stride *= (uint64_t)n;
    }
    if (stride == scale->n)
        return ACCEL_OK;
    accel_scale_map_clear(m);
    return accel_fail(ACCEL_ENOSUP, "scale '%.200s' does not fit '%.200s'", scale->name, t->name);
}

void accel_scale_map_clear(struct accel_scale_map *m)
{
    accel_free(m->block);
    accel_free(m->stride);
    m->block = NULL;
    m->stride = NULL;
}

uint64_t accel_scale_index(const struct accel_scale_map *m, uint64_t at)
{
    uint64_t index = 0;
    for (int a = m->rank - 1; !m->one && a >= 0; a--) {
        uint64_t i = at % (uint64_t)m->dim[a];
        at /= (uint64_t)m->dim[a];
        index += i / (uint64_t)m->block[a] * m->stride[a];
    }
    return index;
}
