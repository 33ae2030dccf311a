/* malloc behind one door. The countdown is atomic so that counting stays right under threads; tests
 * that fail allocations run on one. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)1 << 21)

static atomic_long countdown; /* 0: off; 1: the next one fails */
static atomic_long count;
static bool keep_failing;

static bool must_fail(void)
{
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    long left = atomic_load_explicit(&countdown, memory_order_relaxed);
    if (left == 0)
        return false;
    if (left == 1) {
        if (!keep_failing)
            atomic_store(&countdown, 0);
        return true;
    }
    atomic_store(&countdown, left - 1);
    return false;
}

void accel_alloc_fail_at(long nth, bool forever)
{
    atomic_store(&count, 0);
    keep_failing = forever;
    atomic_store(&countdown, nth);
}

long accel_alloc_count(void)
{
    return atomic_load(&count);
}

void *accel_calloc(size_t n, size_t size)
{
    if (must_fail())
        return NULL;
    return calloc(n ? n : 1, size ? size : 1);
}

void *accel_realloc(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (must_fail() || __builtin_mul_overflow(n, size, &bytes))
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

/* The kernel promises more memory than there is and kills later: what the machine cannot hold is
 * refused here. */
static bool fits_machine(size_t size)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages <= 0 || page <= 0 || size / (size_t)page < (size_t)pages;
}

void *accel_alloc_pages(size_t size)
{
    size_t align = size >= HUGE_PAGE ? HUGE_PAGE : 4096;
    if (must_fail() || size > (size_t)-1 - align || !fits_machine(size))
        return NULL;
    size_t whole = (size + align - 1) / align * align;
    void *p = aligned_alloc(align, whole ? whole : align);
    if (p && align == HUGE_PAGE)
        madvise(p, whole, MADV_HUGEPAGE); /* a wish: small pages do as well, slower */
    return p;
}

void accel_free(void *p)
{
    free(p);
}

bool accel_grow(void **ptr, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return true;
    size_t want = *cap ? *cap : 8;
    while (want < need)
        if (__builtin_mul_overflow(want, (size_t)2, &want))
            return false;
    void *p = accel_realloc(*ptr, want, size);
    if (!p)
        return false;
    *ptr = p;
    *cap = want;
    return true;
}
