/* device.c - the device of this build for this processor: oneDNN where it is built in and there,
 * else BLAS. */
#include "device/device.h"

enum accel_err accel_device_cpu(struct accel_device **out)
{
#ifdef ACCEL_HAVE_ONEDNN
    ACCEL_TRY(accel_device_onednn(out));
    if (*out)
        return ACCEL_OK;
#endif
    return accel_device_blas(out);
}
