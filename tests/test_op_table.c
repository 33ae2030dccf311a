/* Laws over the whole operator table: complete rows, names found, examples that infer, walls that
 * are counted. tests of single operators are elsewhere. */
#include <limits.h>

#include "tests/op_t.h"

/* Operators that are known by name and arity only; the number only goes down. */
#define MOST_WALLS 42

START_TEST(every_row_is_complete)
{
    for (int i = 0; i < accel_op_count(); i++) {
        const struct accel_op *op = accel_op_table[i];
        ck_assert_ptr_nonnull(op);
        ck_assert_ptr_nonnull(op->name);
        ck_assert_ptr_nonnull(op->domain);
        ck_assert_msg(op->since >= 1 && op->since <= 28, "%s: since %d", op->name, op->since);
        ck_assert_msg(op->min_in >= 0 && op->min_in <= op->max_in, "%s: inputs", op->name);
        ck_assert_msg(op->min_out >= 0 && op->min_out <= op->max_out, "%s: outputs", op->name);
        for (const struct accel_attr_rule *a = op->attrs; a && a->name; a++)
            ck_assert_msg(a->kind >= 1 && a->kind <= 14, "%s: kind of '%s'", op->name, a->name);
        if (accel_op_is_wall(op))
            ck_assert_msg(!op->parse && !op->forward && !op->cost && !op->weights,
                          "%s has functions but no infer", op->name);
    }
    ck_assert_ptr_null(accel_op_table[accel_op_count()]);
}
END_TEST

START_TEST(names_are_unique_and_found)
{
    for (int i = 0; i < accel_op_count(); i++) {
        const struct accel_op *op = accel_op_table[i];
        ck_assert_msg(accel_op_find(op->name, op->domain) == op, "%s is there twice", op->name);
    }
    ck_assert_ptr_eq(accel_op_find("Conv", "ai.onnx"), accel_op_find("Conv", ""));
    ck_assert_ptr_null(accel_op_find("Conv", "com.example"));
    ck_assert_ptr_null(accel_op_find("conv", ""));
}
END_TEST

START_TEST(walls_become_fewer)
{
    int walls = 0;
    for (int i = 0; i < accel_op_count(); i++)
        walls += accel_op_is_wall(accel_op_table[i]);
    ck_assert_int_le(walls, MOST_WALLS);
}
END_TEST

/* Inference of every example succeeds and gives output 0 a type and a rank. */
START_TEST(examples_infer)
{
    int bad = 0, n = 0;
    for (int i = 0; i < accel_op_count(); i++) {
        const struct accel_op *op = accel_op_table[i];
        bool ms = strcmp(op->domain, "com.microsoft") == 0;
        if (op->max_out > 8 || (!ms && *op->domain))
            continue;
        for (const char *const *e = op->examples; e && *e; e++) {
            char name[100];
            snprintf(name, sizeof name, "%s%s", ms ? "ms:" : "", op->name);
            struct op_run r = op_begin(name, 20, *e);
            const struct accel_value *y = r.n->out[0];
            if (r.err || y->shape.rank < 0 || y->dtype == ACCEL_UNDEFINED) {
                fprintf(stderr, "%s %s: %s\n", name, *e, r.err ? accel_errmsg() : "unknown");
                bad++;
            }
            n++;
            op_end(&r);
        }
    }
    ck_assert_int_eq(bad, 0);
    ck_assert_int_ge(n, 200);
}
END_TEST

/* Without its inputs' shapes an operator answers "unknown", never an error or a crash. */
START_TEST(unknown_ranks_are_no_error)
{
    static const char *const ranks[] = {"?", "? ?", "? ? ?", "? ? ? ?", "? ? ? ? ?", "? ? ? ? ? ?"};
    int bad = 0;
    for (int i = 0; i < accel_op_count(); i++) {
        const struct accel_op *op = accel_op_table[i];
        bool required = false;
        for (const struct accel_attr_rule *a = op->attrs; a && a->name; a++)
            required = required || a->flags || a->kind == ACCEL_ATTR_GRAPH;
        if (accel_op_is_wall(op) || *op->domain || op->max_out > 8 || op->min_in < 1 ||
            op->min_in > 6 || required)
            continue;
        struct op_run r = op_begin(op->name, 20, ranks[op->min_in - 1]);
        if (r.err && r.err != ACCEL_EMODEL) {
            fprintf(stderr, "%s: %s\n", op->name, accel_errmsg());
            bad++;
        }
        op_end(&r);
    }
    ck_assert_int_eq(bad, 0);
}
END_TEST

START_TEST(shapes_that_do_not_fit_are_named)
{
    op_fails("Reshape", 13, "2x3 [4,2]", ACCEL_ESHAPE, "6 elements");
    op_fails("Reshape", 13, "2x3 [-1,-1]", ACCEL_EMODEL, "more than one");
    op_fails("Transpose", 13, "2x3 | perm=0,0", ACCEL_ESHAPE, "twice");
    op_fails("Concat", 13, "2x3 3x3 | axis=1", ACCEL_ESHAPE, "axis 0");
    op_fails("Concat", 13, "2x3 2x3 | axis=5", ACCEL_ESHAPE, "axis 5");
    op_fails("Squeeze", 13, "2x3 [0]", ACCEL_ESHAPE, "size 2");
    op_fails("Expand", 13, "2x3 [2,4]", ACCEL_ESHAPE, "axis 1");
    op_fails("Slice", 13, "5 [0] [5] [0] [0]", ACCEL_ESHAPE, "step");
    op_fails("Tile", 13, "2x3 [2]", ACCEL_ESHAPE, "repeats");
    op_fails("Pad", 13, "2x3 [1,1]", ACCEL_ESHAPE, "pads");
    op_fails("Resize", 13, "1x1x4x4 - f[1,2]", ACCEL_ESHAPE, "scales");
    op_fails("DepthToSpace", 13, "1x7x2x2 | blocksize=2", ACCEL_ESHAPE, "multiple");
    op_fails("TopK", 13, "2x3 [4]", ACCEL_ESHAPE, "k is 4");
    op_fails("Cast", 13, "2 | to=99", ACCEL_EMODEL, "99");
    op_fails("GatherND", 13, "2x3 5x3", ACCEL_ESHAPE, "rank 2");
    op_fails("ScatterND", 13, "2x3 5x1 5x4x4", ACCEL_ESHAPE, "updates");
}
END_TEST

START_TEST(symbols_survive)
{
    op_is("Reshape", 13, "NxCx4x4 [0,-1]", "Nx?", -2);
    op_is("Reshape", 13, "Nx3x4 [-1,12]", "Nx12", -2);
    op_is("Reshape", 13, "Nx3x4 [-1,3,4]", "Nx3x4", -2);
    op_is("Flatten", 13, "Nx3x4", "Nx12", -2);
    op_is("Transpose", 13, "NxCx4 | perm=2,0,1", "4xNxC", -2);
    op_is("Concat", 13, "Nx3 Nx5 | axis=1", "Nx8", -2);
    op_is("Slice", 13, "NxC [0] [1] [1]", "Nx1", -2);
    op_is("Slice", 13, "NxC [0] [9223372036854775807] [1]", "NxC", -2);
    op_is("Slice", 13, "10 [-1] [-11] [0] [-3]", "4", -2);
    op_is("Expand", 13, "Nx1 [1,4]", "Nx4", -2);
    op_is("Resize", 13, "NxCxHxW - f[1,1,2,2]", "NxCx?x?", -2);
    op_is("Unsqueeze", 13, "N [0,2]", "1xNx1", -2);
    op_is("Squeeze", 11, "Nx1x4 | axes=1", "Nx4", -2);
}
END_TEST

START_TEST(kernels_give_elements)
{
    op_gives("Slice", 13, "[1,2,3,4,5] [4] [-9] [0] [-2]", "5,3,1");
    op_gives("Gather", 13, "[10,20,30] [-1,0]", "30,10");
    op_gives("Concat", 13, "[1,2] [3] | axis=0", "1,2,3");
    op_gives("Transpose", 13, "2x3[1,2,3,4,5,6]", "1,4,2,5,3,6");
    op_gives("Range", 13, "scalar[2] scalar[9] scalar[3]", "2,5,8");
    op_gives("Cast", 13, "f[1.9,-1.9,300] | to=2", "1,255,44");
    op_gives("Shape", 15, "2x3x4 | start=1", "3,4");
    op_gives("ScatterND", 13, "[1,2,3,4] 2x1[3,0] [9,8]", "8,2,3,9");
    op_gives("Tile", 13, "[1,2] [2]", "1,2,1,2");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("operator table");
    TCase *t = tcase_create("laws");
    tcase_add_test(t, every_row_is_complete);
    tcase_add_test(t, names_are_unique_and_found);
    tcase_add_test(t, walls_become_fewer);
    tcase_add_test(t, examples_infer);
    tcase_add_test(t, unknown_ranks_are_no_error);
    tcase_add_test(t, shapes_that_do_not_fit_are_named);
    tcase_add_test(t, symbols_survive);
    tcase_add_test(t, kernels_give_elements);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
