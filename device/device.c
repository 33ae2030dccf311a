/* device.c - a build without fast kernels has no device. */
#include "device/device.h"

#ifndef ACCEL_HAVE_ONEDNN
enum accel_err accel_device_cpu(struct accel_device **out)
{
    *out = NULL;
    return ACCEL_OK;
}
#else
_Static_assert(ACCEL_MAX_IO >= 16, "operands of a chain"); /* accel_device_cpu: ops/onednn */
#endif
