/* The file of tuned shapes: what is kept is read again, each row as itself; of a damaged or foreign file nothing is
 * taken, and why is said; whatever call of the system fails, the file that was there stays. */
#include "core/status.h"
#include "core/tuned.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char identity[] = "NVIDIA H200, driver 13000";
static char folder[] = "/tmp/rung-tuned-test-XXXXXX", path[256];

static int fails_rename, fails_realloc, fails_close, fails_write, reads_until_one_fails;
static struct rlimit any_size;

int __real_rename(const char *from, const char *to), __wrap_rename(const char *from, const char *to);
void *__real_realloc(void *memory, size_t bytes), *__wrap_realloc(void *memory, size_t bytes);
int __real_fclose(FILE *file), __wrap_fclose(FILE *file);
char *__real_fgets(char *line, int bytes, FILE *file), *__wrap_fgets(char *line, int bytes, FILE *file);

char *__wrap_fgets(char *line, int bytes, FILE *file)
{
    if (reads_until_one_fails && --reads_until_one_fails == 0) {
        fputc(0, file); /* which a file that is read does not take: now it has an error */
        return NULL;
    }
    return __real_fgets(line, bytes, file);
}

static const rung_tuned *saved_meanwhile;

int __wrap_rename(const char *from, const char *to)
{
    const rung_tuned *other = saved_meanwhile;
    saved_meanwhile = NULL;
    if (other)
        assert_int_equal(rung_tuned_save(other), RUNG_SUCCESS);
    errno = EXDEV;
    return fails_rename ? -1 : __real_rename(from, to);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails_realloc ? NULL : __real_realloc(memory, bytes);
}

int __wrap_fclose(FILE *file)
{
    if (fails_write) /* there is room again by now */
        setrlimit(RLIMIT_FSIZE, &any_size);
    int result = __real_fclose(file);
    errno = ENOSPC;
    return fails_close ? EOF : result;
}

static int files_before;

static int open_files(void)
{
    int count = 0;
    DIR *files = opendir("/proc/self/fd");
    while (files && readdir(files))
        count++;
    closedir(files);
    return count;
}

static int open_folder(void **state)
{
    (void)state;
    files_before = open_files();
    assert_non_null(mkdtemp(folder));
    setenv("RUNG_CACHE_DIR", folder, 1);
    snprintf(path, sizeof path, "%s/tuned-nvidia-h200--driver-13000.jsonl", folder);
    return 0;
}

/* The i-th of many problems that differ from each other in one thing at least. */
static rung_problem problem_at(int i)
{
    rung_problem p;
    memset(&p, 0, sizeof p);
    p.m = 100 + (i == 1), p.n = 200 + (i == 2), p.k = i == 3 ? 0 : 300, p.batch = 1 + (i == 4);
    p.trans_a = i == 5, p.trans_b = i == 6;
    p.math = i == 7 ? RUNG_ACCURATE : i == 8 ? RUNG_FAST : RUNG_STRICT;
    if (i > 8)
        p.m = ((int64_t)1 << 40) + i;
    return p;
}

static const rung_kernel *kernel_for(int i)
{
    return rung_kernel_at(i % rung_kernel_count());
}

static void make_table(rung_tuned *t, int count)
{
    unlink(path);
    rung_tuned_load(t, identity);
    assert_int_equal(t->count, 0);
    assert_string_equal(t->path, path);
    assert_string_equal(t->state, "no tuned shapes for this device (`rung tune` makes them)");
    for (int i = 0; i < count; i++) {
        const rung_problem p = problem_at(i);
        assert_int_equal(rung_tuned_record(t, &p, kernel_for(i), 0.5 + i), RUNG_SUCCESS);
        assert_int_equal(t->count, i + 1);
    }
}

static void each_row_is_found_as_itself(void **state)
{
    (void)state;
    enum { ROWS = 200 }; /* the table grows twice */
    rung_tuned t, again;
    char words[sizeof again.state];
    make_table(&t, ROWS);
    rung_problem p = problem_at(3);
    assert_int_equal(rung_tuned_record(&t, &p, kernel_for(50), 7.25), RUNG_SUCCESS); /* measured anew */
    assert_int_equal(t.count, ROWS);
    assert_int_equal(rung_tuned_save(&t), RUNG_SUCCESS);
    rung_tuned_load(&again, identity);
    snprintf(words, sizeof words, "%d tuned shapes from %s", ROWS, path);
    assert_string_equal(again.state, words);
    const rung_tuned *const both[] = {&t, &again};
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < ROWS; i++) {
            p = problem_at(i);
            const rung_tuned_row *row = rung_tuned_find(both[which], &p);
            assert_non_null(row);
            assert_ptr_equal(row->kernel, kernel_for(i == 3 ? 50 : i));
            assert_true(row->us == (i == 3 ? 7.25 : 0.5 + i));
            assert_true(row->m == p.m && row->n == p.n && row->k == p.k && row->batch == p.batch);
            assert_true(row->trans_a == p.trans_a && row->trans_b == p.trans_b && row->math == p.math);
        }
    p = problem_at(ROWS);
    assert_null(rung_tuned_find(&again, &p));
    rung_tuned_free(&t);
    assert_null(rung_tuned_find(&t, &p));
    rung_tuned_free(&again);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    __real_fclose(file);
}

static void read_file(char *text, size_t bytes)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, bytes - 1, file)] = 0;
    __real_fclose(file);
}

/* Replaces the first `from` in a copy of the text. */
static const char *with(const char *text, const char *from, const char *to)
{
    static char changed[2048];
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return changed;
}

static void expect_ignored(const char *text, const char *why)
{
    rung_tuned t;
    char words[sizeof t.state];
    write_file(text);
    rung_tuned_load(&t, identity);
    snprintf(words, sizeof words, "%s was ignored: %s (`rung tune` makes a new one)", path, why);
    if (t.count != 0 || strcmp(t.state, words) != 0)
        fail_msg("%d rows, '%s', not '%s', of\n%s", t.count, t.state, words, text);
    rung_tuned_free(&t);
}

static void of_a_file_that_cannot_be_read_to_its_end_nothing_is_taken(void **state)
{
    (void)state;
    enum { ROWS = 3 };
    rung_tuned t;
    char text[2048];
    make_table(&t, ROWS);
    assert_int_equal(rung_tuned_save(&t), RUNG_SUCCESS);
    rung_tuned_free(&t);
    read_file(text, sizeof text);
    for (int read = 1; read <= 1 + ROWS + 1; read++) { /* the first line, the rows, the end */
        reads_until_one_fails = read;
        expect_ignored(text, "it cannot be read");
        assert_int_equal(reads_until_one_fails, 0);
    }
    unlink(path);
}

static void of_a_damaged_or_foreign_file_nothing_is_taken(void **state)
{
    (void)state;
    static const char *const damages[][2] = {
        {"\"op\"", "\"oq\""},
        {"\"NT\"", "\"NX\""},
        {"\"NT\"", "\"XT\""},
        {"\"NT\"", "\"N\""},
        {"\"NT\"", "\"NTN\""},
        {"\"NT\"", "NT"},
        {"\"NT\"", "\"NT"},
        {"\"m\": 100", "\"m\": 0"},
        {"\"m\": 100", "\"m\": x"},
        {"\"m\": 100", "\"m\": -1"},
        {"\"m\": 100", "\"m\": 9007199254740992"},
        {"\"m\": 100", "\"m\": nan"},
        {"\"n\": 200", "\"n\": 0"},
        {"\"n\": 200", "\"n\": 9007199254740992"},
        {"\"n\"", "\"o\""},
        {"\"k\": 300", "\"k\": -1"},
        {"\"k\": 300", "\"k\": 9007199254740992"},
        {"\"k\"", "\"l\""},
        {"\"batch\": 1", "\"batch\": 0"},
        {"\"batch\": 1", "\"batch\": 9007199254740992"},
        {"\"batch\"", "\"bach\""},
        {"\"us\": 6.5", "\"us\": 0"},
        {"\"us\"", "\"ms\""},
        {"\"us\": 6.5", "\"us\": -1"},
        {"\"strict\"", "\"stricter\""},
        {"\"strict\"", "\"\""},
        {"\"math\"", "\"meth\""},
        {"\"kernel\"", "\"colonel\""},
        {"{\"op\"", "[\"op\""},
        {"}\n{\"op\": \"NT\"", "\n{\"op\": \"NT\""},
        {"\"us\": 6.5}", "\"us\": 6.5"},
    };
    rung_tuned t;
    char text[2048];
    make_table(&t, 0);
    for (int i = 0; i < 7; i += 6) { /* NN, and NT */
        const rung_problem p = problem_at(i);
        assert_int_equal(rung_tuned_record(&t, &p, kernel_for(i), 0.5 + i), RUNG_SUCCESS);
    }
    assert_int_equal(rung_tuned_save(&t), RUNG_SUCCESS);
    rung_tuned_free(&t);
    read_file(text, sizeof text);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const char *second = strstr(text, "{\"op\": \"NT\"");
        char changed[4096];
        const int in_first = strchr(damages[i][0], '\n') != NULL || !strstr(second, damages[i][0]);
        snprintf(changed, sizeof changed, "%.*s%s", in_first ? 0 : (int)(second - text), text,
                 with(in_first ? text : second, damages[i][0], damages[i][1]));
        expect_ignored(changed, "a line is damaged");
    }
    expect_ignored("", "it is empty");
    expect_ignored("{}\n", "its first line is damaged");
    expect_ignored(with(text, "\"format\"", "\"from\""), "its first line is damaged");
    expect_ignored(with(text, "\"rung\"", "\"ring\""), "its first line is damaged");
    expect_ignored(with(text, "\"device\"", "\"devise\""), "its first line is damaged");
    expect_ignored(with(text, "\"format\": 1", "\"format\": 2"), "it was made by another version of Rung");
    expect_ignored(with(text, rung_version(), "0.0.1"), "it was made by another version of Rung");
    expect_ignored(with(text, "13000", "13001"), "it was made on another device or driver");
    write_file(with(text, kernel_for(6)->name, "a_kernel_of_the_past")); /* is passed over, and no damage */
    rung_tuned_load(&t, identity);
    assert_int_equal(t.count, 1);
    rung_tuned_free(&t);
    write_file(with(text, "\"m\": 100", "\"m\": 9007199254740991")); /* the largest size that is one */
    rung_tuned_load(&t, identity);
    assert_int_equal(t.count, 2);
    rung_tuned_free(&t);
    fails_realloc = 1;
    expect_ignored(text, "there is no memory for it");
    fails_realloc = 0;
    write_file(text);
    rung_tuned_load(&t, identity);
    assert_int_equal(t.count, 2);
    rung_tuned_free(&t);
}

/* Returns a copy of the text in which the value of a key is so many letters. */
static const char *with_letters(const char *text, const char *key, size_t count)
{
    static char changed[4096];
    char start[32];
    snprintf(start, sizeof start, "\"%s\": \"", key);
    const char *value = strstr(text, start);
    assert_non_null(value);
    value += strlen(start);
    const size_t before = (size_t)(value - text), rest = strlen(value) - strcspn(value, "\"");
    assert_true(before + count + rest < sizeof changed);
    memcpy(changed, text, before);
    memset(changed + before, 'x', count);
    strcpy(changed + before + count, value + strcspn(value, "\""));
    return changed;
}

/* A text that fits its room with the zero behind it is read, and means nothing here; one letter more is damage. */
static void a_text_is_as_long_as_its_room_at_most(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        size_t room;
        const char *fits, *longer; /* NULL: the row is passed over */
    } texts[] = {{"kernel", 96, NULL, "a line is damaged"},
                 {"rung", 32, "it was made by another version of Rung", "its first line is damaged"},
                 {"device", sizeof((rung_tuned *)0)->identity, "it was made on another device or driver",
                  "its first line is damaged"}};
    rung_tuned t;
    char text[2048];
    make_table(&t, 1);
    assert_int_equal(rung_tuned_save(&t), RUNG_SUCCESS);
    rung_tuned_free(&t);
    read_file(text, sizeof text);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t count = texts[i].room - 2; count < texts[i].room + 3; count++) {
            const char *why = count < texts[i].room ? texts[i].fits : texts[i].longer;
            if (why) {
                expect_ignored(with_letters(text, texts[i].key, count), why);
                continue;
            }
            write_file(with_letters(text, texts[i].key, count));
            rung_tuned_load(&t, identity);
            assert_int_equal(t.count, 0);
            assert_null(strstr(t.state, "ignored"));
            rung_tuned_free(&t);
        }
}

static void what_was_there_stays(void **state)
{
    (void)state;
    rung_tuned t;
    char before[4096], after[4096], words[700];
    make_table(&t, 4);
    assert_int_equal(rung_tuned_save(&t), RUNG_SUCCESS);
    read_file(before, sizeof before);
    rung_problem p = problem_at(9);
    assert_int_equal(rung_tuned_record(&t, &p, kernel_for(9), 1.0), RUNG_SUCCESS);
    for (int i = 0; i < 2; i++) {
        *(i ? &fails_rename : &fails_close) = 1;
        assert_int_equal(rung_tuned_save(&t), RUNG_UNSUPPORTED);
        fails_rename = fails_close = 0;
        snprintf(words, sizeof words, "cannot write %s: %s", path, strerror(i ? EXDEV : ENOSPC));
        assert_string_equal(rung_last_error(), words);
        read_file(after, sizeof after);
        assert_string_equal(after, before);
    }
    rung_tuned_free(&t);
    make_table(&t, 64); /* the next one needs more memory */
    fails_realloc = 1;
    assert_int_equal(rung_tuned_record(&t, &p, kernel_for(9), 1.0), RUNG_SUCCESS); /* it is there already */
    p = problem_at(64);
    assert_int_equal(rung_tuned_record(&t, &p, kernel_for(9), 1.0), RUNG_OUT_OF_MEMORY);
    assert_string_equal(rung_last_error(), "no memory for another tuned shape");
    fails_realloc = 0;
    assert_int_equal(t.count, 64);
    for (int i = 0; i < t.count; i++) { /* and each of them can be read */
        p = problem_at(i);
        assert_non_null(rung_tuned_find(&t, &p));
    }
    rung_tuned_free(&t);
}

/* The disk is full for a while: rows are lost, and closing the file is no failure any more. */
static void a_row_that_is_lost_is_noticed(void **state)
{
    (void)state;
    enum { ROWS = 64, ROOM = 100 }; /* so many rows fill a buffer and are written before the file is closed */
    rung_tuned t;
    char words[700];
    make_table(&t, ROWS);
    assert_int_equal(rung_tuned_save(&t), RUNG_SUCCESS);
    rung_problem p = problem_at(ROWS);
    assert_int_equal(rung_tuned_record(&t, &p, kernel_for(9), 1.0), RUNG_SUCCESS);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &any_size), 0);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    fails_write = 1;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ROOM, any_size.rlim_max}), 0);
    const rung_status status = rung_tuned_save(&t);
    fails_write = 0;
    signal(SIGXFSZ, before);
    assert_int_equal(status, RUNG_UNSUPPORTED);
    snprintf(words, sizeof words, "cannot write %s: ", path);
    assert_int_equal(strncmp(rung_last_error(), words, strlen(words)), 0);
    rung_tuned_free(&t);
    rung_tuned_load(&t, identity);
    assert_int_equal(t.count, ROWS);
    rung_tuned_free(&t);
}

/* One thread saves while another one is about to: each has a file of its own until it has its name. */
static void who_saves_at_the_same_time_has_a_file_of_its_own(void **state)
{
    (void)state;
    rung_tuned t, other, again;
    make_table(&other, 150);
    make_table(&t, 60);
    saved_meanwhile = &other;
    assert_int_equal(rung_tuned_save(&t), RUNG_SUCCESS);
    rung_tuned_load(&again, identity);
    assert_int_equal(again.count, 60);
    rung_tuned_free(&again);
    rung_tuned_free(&other);
    rung_tuned_free(&t);
}

/* A path that there is no room for is none: cut short it would be another file's. */
static void a_path_is_never_cut_short(void **state)
{
    (void)state;
    char value[700];
    const size_t most = sizeof((rung_tuned *)0)->path - 1 - strlen("/tuned-a-gpu-.jsonl");
    memset(value, '/', sizeof value);
    memcpy(value, folder, strlen(folder));
    for (size_t length = most - 1; length < most + 3; length++) {
        rung_tuned t;
        value[length] = '\0';
        setenv("RUNG_CACHE_DIR", value, 1);
        value[length] = '/';
        rung_tuned_load(&t, "A GPU!");
        assert_int_equal(t.path[0] != '\0', length <= most);
        assert_int_equal(rung_tuned_save(&t), length <= most ? RUNG_SUCCESS : RUNG_UNSUPPORTED);
        if (length <= most)
            assert_int_equal(unlink(t.path), 0);
        rung_tuned_free(&t);
    }
    setenv("RUNG_CACHE_DIR", folder, 1);
}

static void the_file_lies_in_the_first_folder_that_is_named(void **state)
{
    (void)state;
    static const char *const names[] = {"RUNG_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    static const char *const below[] = {"own/tuned-a-gpu-.jsonl", "xdg/rung/tuned-a-gpu-.jsonl",
                                        "home/.cache/rung/tuned-a-gpu-.jsonl"};
    for (int is_set = 0; is_set < 27; is_set++) { /* each is not there, empty or set */
        int wanted = 3, left = is_set;
        for (int i = 0; i < 3; i++, left /= 3) {
            char value[128] = "";
            if (left % 3 == 2)
                snprintf(value, sizeof value, "%s/%s", folder, i == 0 ? "own" : i == 1 ? "xdg" : "home");
            if (left % 3)
                setenv(names[i], value, 1);
            else
                unsetenv(names[i]);
            wanted = wanted == 3 && left % 3 == 2 ? i : wanted;
        }
        rung_tuned t;
        rung_tuned_load(&t, "A GPU!");
        char where[256] = "";
        if (wanted < 3)
            snprintf(where, sizeof where, "%s/%s", folder, below[wanted]);
        assert_string_equal(t.path, where);
        if (wanted == 3) {
            assert_int_equal(rung_tuned_save(&t), RUNG_UNSUPPORTED);
            assert_string_equal(rung_last_error(), "no cache folder: set RUNG_CACHE_DIR, XDG_CACHE_HOME or HOME");
        } else if (wanted == 2) { /* folders are made */
            assert_int_equal(rung_tuned_save(&t), RUNG_SUCCESS);
            assert_int_equal(unlink(t.path), 0);
            for (int up = 0; up < 3; up++) { /* home, .cache and rung */
                struct stat made;
                *strrchr(where, '/') = '\0';
                assert_int_equal(stat(where, &made), 0);
                assert_int_equal(made.st_mode & 0700, 0700);
                assert_int_equal(rmdir(where), 0);
            }
        }
        rung_tuned_free(&t);
    }
    setenv("RUNG_CACHE_DIR", folder, 1);
}

static void no_file_stays_open(void **state)
{
    (void)state;
    assert_int_equal(open_files(), files_before);
}

/* A test, since of a group's teardown nobody hears whether it failed. */
static void nothing_else_is_left_in_the_folder(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_found_as_itself),
        cmocka_unit_test(of_a_file_that_cannot_be_read_to_its_end_nothing_is_taken),
        cmocka_unit_test(of_a_damaged_or_foreign_file_nothing_is_taken),
        cmocka_unit_test(a_text_is_as_long_as_its_room_at_most),
        cmocka_unit_test(what_was_there_stays),
        cmocka_unit_test(a_row_that_is_lost_is_noticed),
        cmocka_unit_test(who_saves_at_the_same_time_has_a_file_of_its_own),
        cmocka_unit_test(a_path_is_never_cut_short),
        cmocka_unit_test(the_file_lies_in_the_first_folder_that_is_named),
        cmocka_unit_test(no_file_stays_open), /* the last two of them */
        cmocka_unit_test(nothing_else_is_left_in_the_folder),
    };
    return cmocka_run_group_tests(tests, open_folder, NULL);
}
