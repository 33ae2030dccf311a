/* Sets of images: IDX, CIFAR, folders, tar shards; which samples come, in which order, and how
 * pixels become floats. */
#include "tests/data_files.h"
#include "tests/data_t.h"

static struct accel_dataset *d;

static void drop(void)
{
    accel_dataset_close(d);
    d = NULL;
}

static void end(void)
{
    drop();
    data_end();
}

/* 12 images of 4x3 pixels 0 … 11 and so on; labels 0 1 2 0 1 2 … */
static void save_pair(void)
{
    data_save_idx("i", 3, (int[]){12, 3, 4}, 251);
    data_save_idx("l", 1, (int[]){12}, 3);
}

START_TEST(pixels_become_floats_and_labels_classes)
{
    float x[24];
    int64_t label[2];
    save_pair();
    ck_ok(data_open(&d, "idx:%/i,%/l"));
    ck_assert_int_eq((int)d->n, 12);
    ck_assert_int_eq((int)d->n_input, 1);
    ck_assert_int_eq(d->input->rank, 3);
    ck_assert(d->input->dim[0] == 1 && d->input->dim[1] == 3 && d->input->dim[2] == 4);
    ck_assert_uint_eq(d->input->size, 48);
    ck_ok(accel_dataset_read(d, 1, 2, (void *[]){x}, label));
    ck_assert(x[0] == 12 / 255.0f && x[11] == 23 / 255.0f && x[23] == 35 / 255.0f);
    ck_assert(label[0] == 1 && label[1] == 2);
}
END_TEST

START_TEST(mean_and_std_are_taken_after_scaling)
{
    float x[12];
    save_pair();
    ck_ok(data_open(&d, "idx:%/i,%/l?mean=0.5&std=0.25"));
    ck_ok(accel_dataset_read(d, 0, 1, (void *[]){x}, NULL));
    ck_assert(x[0] == -2 && x[3] == (float)((3 / 255.0 - 0.5) / 0.25));
}
END_TEST

START_TEST(a_limit_keeps_the_share_of_each_class)
{
    int64_t label[6];
    float x[6 * 12], again[6 * 12];
    int count[3] = {0};
    save_pair();
    ck_ok(data_open(&d, "idx:%/i,%/l?limit=6"));
    ck_assert_int_eq((int)d->n, 6);
    ck_ok(accel_dataset_read(d, 0, 6, (void *[]){x}, label));
    for (int i = 0; i < 6; i++)
        count[label[i]]++;
    ck_assert(count[0] == 2 && count[1] == 2 && count[2] == 2);
    for (int i = 1; i < 6; i++) /* files' order is kept */
        ck_assert(x[i * 12] > x[(i - 1) * 12]);
    drop();
    ck_ok(data_open(&d, "idx:%/i,%/l?limit=6"));
    ck_ok(accel_dataset_read(d, 0, 6, (void *[]){again}, label));
    ck_assert_mem_eq(x, again, sizeof x);
    drop();
    /* Another seed gives another sample: 6 of 12 with 2 per class are 216 ways. */
    bool differs = false;
    for (uint64_t seed = 1; seed < 4; seed++) {
        data_spec->seed = seed;
        ck_ok(accel_dataset_open(&d, data_spec, ACCEL_SPLIT_TEST, NULL));
        ck_ok(accel_dataset_read(d, 0, 6, (void *[]){again}, label));
        differs = differs || memcmp(x, again, sizeof x);
        if (seed < 3)
            drop();
    }
    ck_assert(differs);
}
END_TEST

START_TEST(odd_limits_go_to_the_largest_remainders)
{
    int64_t label[8];
    float x[8 * 12];
    int count[3] = {0};
    data_save_idx("i", 3, (int[]){10, 3, 4}, 251);
    data_save_idx("l", 1, (int[]){10}, 3);       /* 4, 3, 3 */
    ck_ok(data_open(&d, "idx:%/i,%/l?limit=8")); /* 3.2, 2.4, 2.4 */
    ck_ok(accel_dataset_read(d, 0, 8, (void *[]){x}, label));
    for (int i = 0; i < 8; i++)
        count[label[i]]++;
    ck_assert_msg(count[0] == 3 && count[1] == 3 && count[2] == 2, "%d %d %d", count[0], count[1],
                  count[2]);
    drop();
    ck_ok(data_open(&d, "idx:%/i,%/l?limit=800"));
    ck_assert_int_eq((int)d->n, 10);
}
END_TEST

START_TEST(shuffling_takes_every_sample_once)
{
    float x[12 * 12];
    bool seen[12] = {false}, moved = false;
    save_pair();
    ck_ok(data_open(&d, "idx:%/i,%/l?shuffle=1"));
    ck_ok(accel_dataset_read(d, 0, 12, (void *[]){x}, NULL));
    for (int i = 0; i < 12; i++) {
        int k = (int)lrintf(x[i * 12] * 255) / 12;
        ck_assert(!seen[k]);
        seen[k] = true;
        moved = moved || k != i;
    }
    ck_assert(moved);
}
END_TEST

START_TEST(crop_takes_the_middle)
{
    float x[9];
    data_save_idx("i", 3, (int[]){1, 5, 7}, 251);
    data_save_idx("l", 1, (int[]){1}, 3);
    ck_ok(data_open(&d, "idx:%/i,%/l?crop=3"));
    ck_assert(d->input->dim[1] == 3 && d->input->dim[2] == 3);
    ck_ok(accel_dataset_read(d, 0, 1, (void *[]){x}, NULL));
    ck_assert(x[0] == (7 + 2) / 255.0f && x[8] == (21 + 4) / 255.0f);
    data_fails("idx:%/i,%/l?crop=6", ACCEL_EARG, "crop=6 is more than an image of 7x5");
}
END_TEST

START_TEST(resize_makes_the_shorter_side_that_long)
{
    data_save_idx("i", 3, (int[]){1, 5, 7}, 251);
    data_save_idx("l", 1, (int[]){1}, 3);
    ck_ok(data_open(&d, "idx:%/i,%/l?resize=10"));
    ck_assert(d->input->dim[1] == 10 && d->input->dim[2] == 14);
    drop();
    ck_ok(data_open(&d, "idx:%/i,%/l?resize=3&crop=2"));
    ck_assert(d->input->dim[1] == 2 && d->input->dim[2] == 2);
}
END_TEST

START_TEST(idx_files_that_cannot_be_used_are_named)
{
    unsigned char big[] = {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 1, 7};
    save_pair();
    data_fails("idx:%/i", ACCEL_EARG, "idx:IMAGES,LABELS");
    data_fails("idx", ACCEL_EARG, "idx:IMAGES,LABELS");
    data_fails("idx:%/i,%/none", ACCEL_EMODEL, "/none");
    data_fails("idx:%/i,%/i", ACCEL_EMODEL, "labels for 12 images");
    data_fails("idx:%/l,%/l", ACCEL_EMODEL, "3 or 4 dimensions, not 1");
    data_fails("idx:%/i,%/l?split=test", ACCEL_EARG, "key 'split' means nothing");
    data_fails("idx:%/i,%/l?label=x", ACCEL_EARG, "key 'label' means nothing");
    data_fails("idx:%/i,%/l?mean=1,2,3", ACCEL_EARG, "mean has 3 numbers");
    data_fails("idx:%/i,%/l?std=1,2", ACCEL_EARG, "std has 2 numbers");
    data_fails("idxx:%/i,%/l", ACCEL_EARG, "did you mean 'idx'");
    data_fails("qqqqqqqqqq", ACCEL_EARG, "there are fashion-mnist, mnist");
    data_save("b", big, sizeof big);
    data_fails("idx:%/b,%/l", ACCEL_EMODEL, "its sizes need 18446744065119617025 bytes, it has 1");
    big[3] = 5;
    data_save("b", big, sizeof big);
    data_fails("idx:%/b,%/l", ACCEL_EMODEL, "5 dimensions");
    big[2] = 13;
    data_save("b", big, sizeof big);
    data_fails("idx:%/b,%/l", ACCEL_EMODEL, "type 0x0d");
    big[0] = 1;
    data_save("b", big, sizeof big);
    data_fails("idx:%/b,%/l", ACCEL_EMODEL, "/b: it is no IDX file");
    data_save("b", big, 2);
    data_fails("idx:%/b,%/l", ACCEL_EMODEL, "too early");
    data_save("b", (unsigned char[]){0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 7, 7}, 18);
    data_fails("idx:%/b,%/l", ACCEL_EMODEL, "more bytes than its header tells");
    data_save("b", (unsigned char[]){0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}, 16);
    data_fails("idx:%/b,%/l", ACCEL_EMODEL, "no samples");
}
END_TEST

START_TEST(mnist_files_are_found_by_name_and_split)
{
    data_save_idx("t10k-images-idx3-ubyte", 3, (int[]){2, 3, 4}, 251);
    data_save_idx("t10k-labels-idx1-ubyte", 1, (int[]){2}, 3);
    ck_ok(data_open(&d, "mnist:%"));
    ck_assert_int_eq((int)d->n, 2);
    data_fails("mnist:%?split=train", ACCEL_EMODEL, "train-images-idx3-ubyte' nor 'train-images");
    data_fails("mnist", ACCEL_EARG, "the folder is missing");
    data_fails("fashion-mnist:%?split=train", ACCEL_EMODEL, "there is neither");
}
END_TEST

START_TEST(the_fashion_set_of_debian_reads_as_it_is)
{
    if (access("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz", R_OK)) {
        printf("package dataset-fashion-mnist is not installed: nothing to compare with\n");
        ck_assert_ptr_null(getenv("CI"));
        return;
    }
    static float x[784 * 100];
    int64_t label[100];
    double sum = 0;
    ck_ok(data_open(&d, "fashion-mnist"));
    ck_assert_int_eq((int)d->n, 10000);
    ck_assert_int_eq((int)d->n_class_name, 10);
    ck_ok(accel_dataset_read(d, 0, 100, (void *[]){x}, label));
    for (int i = 0; i < 784 * 100; i++)
        sum += x[i];
    ck_assert(label[0] == 9 && label[1] == 2 && label[2] == 1 && label[99] == 2);
    /* numpy: images[:100].sum() */
    ck_assert_msg(fabs(sum * 255 - 5854180) < 1, "%.3f", sum * 255);
}
END_TEST

START_TEST(cifar_records_hold_label_and_planes)
{
    static unsigned char b[2 * 3074];
    static float x[3072];
    int64_t label[2];
    for (int i = 0; i < 2; i++) {
        b[i * 3074] = 5;
        b[i * 3074 + 1] = (unsigned char)(40 + i);
        for (int k = 0; k < 3072; k++)
            b[i * 3074 + 2 + k] = (unsigned char)(k / 1024 * 100 + i);
    }
    data_save("test.bin", b, sizeof b);
    ck_ok(data_open(&d, "cifar100:%?mean=0,0.5,1&std=1,0.5,1"));
    ck_assert_int_eq((int)d->n, 2);
    ck_ok(accel_dataset_read(d, 1, 1, (void *[]){x}, label));
    ck_assert_int_eq((int)label[0], 41);
    ck_assert(x[0] == 1 / 255.0f);
    ck_assert(x[1024] == (float)((101 / 255.0 - 0.5) / 0.5));
    ck_assert(x[2048] == (float)(201 / 255.0 - 1));
    data_fails("cifar10:%", ACCEL_EMODEL, "test_batch.bin");
    data_fails("cifar10:%?split=train", ACCEL_EMODEL, "data_batch_1.bin");
    data_fails("cifar10", ACCEL_EARG, "the folder is missing");
    data_save("test_batch.bin", b, 3073 + 5);
    data_fails("cifar10:%", ACCEL_EMODEL, "3078 bytes are no whole number of images of 3073");
    b[0] = 10;
    data_save("test_batch.bin", b, 3073);
    data_fails("cifar10:%", ACCEL_EMODEL, "label 10 of 10");
}
END_TEST

static void save_folders(void)
{
    static const char *const dirs[] = {"f", "f/cat", "f/ant", "f/.hidden"};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(mkdir(data_path(dirs[i]), 0777), 0);
    data_save("f/cat/b.png", file_png, sizeof file_png);
    data_save("f/cat/a.PNG", file_png, sizeof file_png);
    data_save("f/cat/notes.txt", "x", 1);
    data_save("f/ant/z.png", file_png, sizeof file_png);
    data_save("f/.hidden/z.png", file_png, sizeof file_png);
}

START_TEST(sub_folders_are_classes_by_sorted_name)
{
    float x[3 * 60];
    int64_t label[3];
    save_folders();
    ck_ok(data_open(&d, "folder:%/f"));
    ck_assert_int_eq((int)d->n, 3);
    ck_assert_str_eq(d->class_name[0], "ant");
    ck_assert(d->input->dim[0] == 3 && d->input->dim[1] == 4 && d->input->dim[2] == 5);
    ck_ok(accel_dataset_read(d, 0, 3, (void *[]){x}, label));
    ck_assert(label[0] == 0 && label[1] == 1 && label[2] == 1);
    for (int c = 0; c < 3; c++) /* RGB by pixel becomes planes */
        for (int i = 0; i < 20; i++)
            ck_assert(x[c * 20 + i] == file_png_pixels[i * 3 + c] / 255.0f);
}
END_TEST

START_TEST(images_of_another_size_need_resize_and_crop)
{
    float x[3 * 27];
    save_folders();
    data_save("f/ant/y.jpg", file_jpeg, sizeof file_jpeg); /* 12x10, the first one */
    ck_ok(data_open(&d, "folder:%/f"));
    ck_fails(accel_dataset_read(d, 1, 1, (void *[]){x}, NULL), ACCEL_EMODEL,
             "image 1 is 5x4, the first one 12x10: give resize=N and crop=N");
    drop();
    ck_ok(data_open(&d, "folder:%/f?resize=4&crop=3"));
    ck_ok(accel_dataset_read(d, 0, 3, (void *[]){x}, NULL));
}
END_TEST

START_TEST(folders_that_cannot_be_used_are_named)
{
    float x[60];
    save_folders();
    data_fails("folder", ACCEL_EARG, "the path is missing");
    data_fails("folder:%/none", ACCEL_EMODEL, "/none");
    data_fails("folder:%/f/cat", ACCEL_EMODEL, "no sub-folders");
    data_fails("folder:%/f?split=train", ACCEL_EARG, "no folders 'train' and 'test'");
    ck_assert_int_eq(mkdir(data_path("f/bee"), 0777), 0);
    ck_ok(data_open(&d, "folder:%/f"));
    ck_assert_uint_eq(data_log.n, 1);
    ck_assert_ptr_nonnull(strstr(data_log.text[0], "f/bee' holds no JPEG"));
    drop();
    data_save("f/ant/z.png", file_png, sizeof file_png - 30);
    data_fails("folder:%/f", ACCEL_EMODEL, "z.png: PNG: ");
    data_save("f/ant/z.png", file_png, sizeof file_png);
    data_save("f/cat/b.png", "GIF89a", 6);
    ck_ok(data_open(&d, "folder:%/f"));
    ck_fails(accel_dataset_read(d, 2, 1, (void *[]){x}, NULL), ACCEL_EMODEL,
             "b.png: it is neither JPEG nor PNG");
    drop();
    ck_assert_int_eq(mkdir(data_path("e"), 0777), 0);
    ck_assert_int_eq(mkdir(data_path("e/a"), 0777), 0);
    data_fails("folder:%/e", ACCEL_EMODEL, "it has no samples");
}
END_TEST

START_TEST(train_and_val_folders_are_splits)
{
    ck_assert_int_eq(mkdir(data_path("s"), 0777), 0);
    ck_assert_int_eq(mkdir(data_path("s/train"), 0777), 0);
    ck_assert_int_eq(mkdir(data_path("s/val"), 0777), 0);
    ck_assert_int_eq(mkdir(data_path("s/train/a"), 0777), 0);
    ck_assert_int_eq(mkdir(data_path("s/val/a"), 0777), 0);
    data_save("s/train/a/1.png", file_png, sizeof file_png);
    data_save("s/train/a/2.png", file_png, sizeof file_png);
    data_save("s/val/a/1.png", file_png, sizeof file_png);
    ck_ok(data_open(&d, "folder:%/s"));
    ck_assert_int_eq((int)d->n, 1);
    drop();
    ck_ok(data_open(&d, "folder:%/s?split=train"));
    ck_assert_int_eq((int)d->n, 2);
}
END_TEST

/* Appends a member to a tar file in memory. */
static size_t tar_add(unsigned char *tar, size_t at, const char *name, char type, const void *bytes,
                      size_t n)
{
    unsigned char *h = tar + at;
    unsigned sum = 0;
    memset(h, 0, 512 + (n + 511) / 512 * 512);
    snprintf((char *)h, 100, "%s", name);
    snprintf((char *)h + 124, 12, "%011zo", n);
    h[156] = (unsigned char)type;
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum);
    memcpy(h + 512, bytes, n);
    return at + 512 + (n + 511) / 512 * 512;
}

START_TEST(tar_members_of_one_name_are_a_sample)
{
    static unsigned char tar[32768];
    float x[2 * 60];
    int64_t label[2];
    size_t n = tar_add(tar, 0, "d/one.png", '0', file_png, sizeof file_png);
    n = tar_add(tar, n, "d/one.cls", '0', "7\n", 2);
    n = tar_add(tar, n, "d/two.txt", '0', "no image", 8);
    n = tar_add(tar, n, "d/", '5', "", 0);
    data_save("s-08.tar", tar, n + 1024);
    n = tar_add(tar, 0, "three.cls", '0', "3", 1);
    n = tar_add(tar, n, "././@LongLink", 'L', "three.png", 10);
    n = tar_add(tar, n, "cut", '0', file_png, sizeof file_png);
    data_save("s-09.tar", tar, n);
    ck_ok(data_open(&d, "tar:%/s-{08..09}.tar"));
    ck_assert_int_eq((int)d->n, 2);
    ck_ok(accel_dataset_read(d, 0, 2, (void *[]){x}, label));
    ck_assert(label[0] == 7 && label[1] == 3);
    ck_assert(x[60 + 3] == file_png_pixels[9] / 255.0f);
    ck_assert_uint_eq(data_log.n, 1);
    ck_assert_ptr_nonnull(strstr(data_log.text[0], "1 samples without"));
}
END_TEST

START_TEST(tar_files_that_cannot_be_used_are_named)
{
    static unsigned char tar[8192];
    size_t n = tar_add(tar, 0, "one.cls", '0', "cat", 3);
    data_fails("tar", ACCEL_EARG, "the files are missing");
    data_fails("tar:%/x-{5..3}.tar", ACCEL_EARG, "range");
    data_fails("tar:%/x-{0..999999}.tar", ACCEL_EARG, "range");
    data_fails("tar:%/none.tar", ACCEL_EMODEL, "none.tar");
    data_save("t.tar", tar, n);
    data_fails("tar:%/t.tar", ACCEL_EMODEL, "t.tar: member 'one.cls': 'cat' is no class");
    data_save("t.tar", tar, 512); /* the contents are cut off */
    data_fails("tar:%/t.tar", ACCEL_EMODEL, "the tar header at byte 0 is damaged");
    tar[0] = 'x';
    data_save("t.tar", tar, n);
    data_fails("tar:%/t.tar", ACCEL_EMODEL, "the tar header at byte 0 is damaged");
    data_save("t.tar", tar, 0);
    data_fails("tar:%/t.tar", ACCEL_EMODEL, "no samples");
}
END_TEST

/* Each allocation of opening and reading fails once. What libpng takes is its own. */
START_TEST(every_failed_allocation_is_an_error)
{
    static const char *const specs[] = {"idx:%/i,%/l?limit=5&shuffle=1&resize=6&crop=5",
                                        "folder:%/f?limit=2", "tar:%/t.tar"};
    static unsigned char tar[8192];
    float x[1024];
    save_pair();
    save_folders();
    size_t n = tar_add(tar, 0, "one.png", '0', file_png, sizeof file_png);
    data_save("t.tar", tar, tar_add(tar, n, "one.cls", '0', "1", 1));
    for (int i = 0; i < 3; i++)
        for (long nth = 1;; nth++) {
            accel_alloc_fail_at(nth, false);
            enum accel_err err = data_open(&d, specs[i]);
            if (!err)
                err = accel_dataset_read(d, 0, 1, (void *[]){x}, NULL);
            bool reached = accel_alloc_count() >= nth;
            accel_alloc_fail_at(0, false);
            drop();
            if (!reached) {
                ck_ok(err);
                break;
            }
            ck_assert_msg(err == ACCEL_ENOMEM, "%s, allocation %ld: %d %s", specs[i], nth, err,
                          accel_errmsg());
            ck_assert_int_lt(nth, 1000);
        }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dataset");
    TCase *t = tcase_create("images");
    tcase_add_checked_fixture(t, data_begin, end);
    tcase_add_test(t, pixels_become_floats_and_labels_classes);
    tcase_add_test(t, mean_and_std_are_taken_after_scaling);
    tcase_add_test(t, a_limit_keeps_the_share_of_each_class);
    tcase_add_test(t, odd_limits_go_to_the_largest_remainders);
    tcase_add_test(t, shuffling_takes_every_sample_once);
    tcase_add_test(t, crop_takes_the_middle);
    tcase_add_test(t, resize_makes_the_shorter_side_that_long);
    tcase_add_test(t, idx_files_that_cannot_be_used_are_named);
    tcase_add_test(t, mnist_files_are_found_by_name_and_split);
    tcase_add_test(t, the_fashion_set_of_debian_reads_as_it_is);
    tcase_add_test(t, cifar_records_hold_label_and_planes);
    tcase_add_test(t, sub_folders_are_classes_by_sorted_name);
    tcase_add_test(t, images_of_another_size_need_resize_and_crop);
    tcase_add_test(t, folders_that_cannot_be_used_are_named);
    tcase_add_test(t, train_and_val_folders_are_splits);
    tcase_add_test(t, tar_members_of_one_name_are_a_sample);
    tcase_add_test(t, tar_files_that_cannot_be_used_are_named);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
