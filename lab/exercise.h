/* The exercises of rung learn: one folder each, found at run time, its goals as data (learn/README.md). */
#ifndef LAB_EXERCISE_H
#define LAB_EXERCISE_H

#include "lab/error.h"

#include <stdint.h>

enum { LAB_EXERCISES = 99, LAB_GOALS = 8, LAB_CASES = 16, LAB_CHIPS = 4 };

/* "goal METRIC[:ARRAY] RELATION LIMIT refuses WHO": a figure that the lens counts, and who falls short of it. */
typedef struct lab_goal {
    char metric[40], array[24]; /* array "": all of them */
    char relation[3];           /* "<=", ">=", "==" */
    double limit;
    char refuses[48]; /* "start", a file of the folder, or a kernel of the catalog */
} lab_goal;

/* "answer NAME METRIC[:ARRAY]": a figure that the learner predicts. */
typedef struct lab_answer {
    char name[40], metric[40], array[24];
} lab_answer;

typedef struct lab_extent3 {
    int64_t m, n, k;
} lab_extent3;

typedef enum lab_exercise_problem {
    LAB_EXERCISE_PRODUCT,
    LAB_EXERCISE_ADD,
    LAB_EXERCISE_TRANSPOSE,
    LAB_EXERCISE_SUM,     /* out[block] for each block */
    LAB_EXERCISE_ONE_SUM, /* out[0] */
    LAB_EXERCISE_PREDICT  /* nothing is computed: answers */
} lab_exercise_problem;

typedef struct lab_exercise {
    char name[64]; /* folder, kernel and file are called so */
    int number;    /* from the name: e07_... */
    char folder[512], title[96];
    lab_exercise_problem problem, counted_problem; /* counted: what the kernel of a prediction computes */
    int bm, bn, threads, shared_bytes, parts, registers;
    int own_tile, own_shared, own_parts; /* the learner's file says them */
    int plain;                           /* alpha is 1 and beta 0 throughout */
    int two_kernels;                     /* NAME_finish adds the parts */
    lab_extent3 cases[LAB_CASES], drawn, count;
    int case_count, draws; /* drawn: so many more, at most this large, anew each time */
    lab_goal goals[LAB_GOALS];
    int goal_count;
    lab_answer answers[LAB_GOALS];
    int answer_count;
    char chips[LAB_CHIPS][16];
    int chip_count;
    char start[48]; /* what the starting file fails with */
    char rung[64];  /* the kernel that `compare` shows beside; "": the solution */
    char next[160]; /* what to read next */
} lab_exercise;

typedef struct lab_course {
    lab_exercise exercises[LAB_EXERCISES];
    int count;
} lab_course;

/* Reads all of the course; RUNG_INVALID_ARGUMENT names the file and line that cannot be read. */
rung_status lab_course_read(lab_course *course);
/* Finds an exercise by number (7, 07), name, or name without its number; NULL: there is none. */
const lab_exercise *lab_exercise_find(const lab_course *course, const char *word);
/* Returns a file of the exercise's folder, into path. */
const char *lab_exercise_file(const lab_exercise *exercise, const char *file, char *path, size_t bytes);

/* text.md has the question, then "## Hint" sections. Returns the question, or hint i (from 0), which the caller frees;
 * NULL where there is no such hint. */
char *lab_exercise_text(const lab_exercise *exercise);
char *lab_exercise_hint(const lab_exercise *exercise, int i);

#endif
