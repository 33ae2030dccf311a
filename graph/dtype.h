/* dtype.h - element types: one row each, numbered as in ONNX's TensorProto.DataType. */
#ifndef ACCEL_GRAPH_DTYPE_H
#define ACCEL_GRAPH_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum accel_dtype {
    ACCEL_UNDEFINED,
    ACCEL_F32,
    ACCEL_U8,
    ACCEL_I8,
    ACCEL_U16,
    ACCEL_I16,
    ACCEL_I32,
    ACCEL_I64,
    ACCEL_STRING,
    ACCEL_BOOL,
    ACCEL_F16,
    ACCEL_F64,
    ACCEL_U32,
    ACCEL_U64,
    ACCEL_C64,
    ACCEL_C128,
    ACCEL_BF16,
    ACCEL_F8E4M3FN,
    ACCEL_F8E4M3FNUZ,
    ACCEL_F8E5M2,
    ACCEL_F8E5M2FNUZ,
    ACCEL_U4,
    ACCEL_I4,
    ACCEL_F4E2M1,
    ACCEL_F8E8M0,
    ACCEL_U2,
    ACCEL_I2,
    ACCEL_N_DTYPES
};

/* How an element is computed with. Storage types are widened to it (design: f16, bf16, int4 … are
 * storage only): REAL to float, or to double for F64; INT (bool included) to int64_t. */
enum accel_class { ACCEL_CLASS_REAL, ACCEL_CLASS_INT, ACCEL_CLASS_OTHER };

struct accel_dtype_info {
    const char *name; /* numpy's: "float32", "int64", "bool", …           */
    int bits;         /* of one stored element; 0 for strings             */
    enum accel_class cls;
    bool is_signed;
};

/* The row of a type; NULL for a number that ONNX does not define. UNDEFINED has a row
 * ("undefined"). */
const struct accel_dtype_info *accel_dtype_find(int dtype);

/* Bytes of n elements as they lie in raw_data (sub-byte types are packed, the last byte filled up).
 * False when the product overflows or the type has no fixed width. */
bool accel_dtype_size(enum accel_dtype dtype, uint64_t n, uint64_t *size);

/* F32, F64, F16, BF16: the types that hold weights a pruner can rank. */
bool accel_dtype_is_float(enum accel_dtype dtype);

/* Converts n stored elements, beginning with element `first` of `src`, to doubles and back. REAL
 * and INT classes only. Rounding to nearest even; integers saturate. Any alignment. */
void accel_dtype_to_f64(enum accel_dtype dtype, const void *src, size_t first, size_t n,
                        double *dst);
void accel_dtype_from_f64(enum accel_dtype dtype, const double *src, size_t n, void *dst,
                          size_t first);

/* The same for int64_t, exact for the INT class. */
void accel_dtype_to_i64(enum accel_dtype dtype, const void *src, size_t first, size_t n,
                        int64_t *dst);

/* IEEE half and bfloat16. */
float accel_f16_to_f32(uint16_t h);
uint16_t accel_f32_to_f16(float f);
float accel_bf16_to_f32(uint16_t b);
uint16_t accel_f32_to_bf16(float f);

#endif
