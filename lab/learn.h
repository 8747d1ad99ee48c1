/* Grades a solution of an exercise by what it does: compiled for the lens, run in a process of its own. */
#ifndef LAB_LEARN_H
#define LAB_LEARN_H

#include "lab/exercise.h"
#include "lab/lens.h"

/* What is graded: a file, or a kernel of the catalog. */
typedef struct lab_attempt {
    const lab_exercise *exercise;
    const lab_course *course; /* to tell another exercise's file */
    const char *file;
    const char *kernel; /* NULL: the file */
    uint64_t seed;      /* of data and drawn sizes */
    const char *html;   /* a page of the last run; NULL: none */
} lab_attempt;

typedef struct lab_goal_result {
    char words[96];
    double value, limit;
    char relation[3];
    int met;
    char why[320];
} lab_goal_result;

typedef struct lab_grade_result {
    int passed;
    /* What it fails with: "compile", "other exercise", "wrong", "crash", one of lab_lens_faults, "goal METRIC" (the
     * first), "answer NAME". */
    char failure[64];
    char sentence[900];
    int cases; /* that ran and were right */
    double error_u, seconds;
    lab_goal_result goals[LAB_GOALS];
    int goal_count;
    int counted; /* totals and barriers hold */
    lab_lens_totals totals;
    double barriers; /* a block */
    double products; /* of the counted problem */
    double results;
    int bm, bn, threads, shared_bytes, parts; /* how it was launched for the counts */
    int html_written;
    char html_failed[200]; /* why no page was written */
} lab_grade_result;

/* Returns the words of a goal's relation: at most, at least or exactly. */
const char *lab_relation_words(const char *relation);

/* Always gives a verdict where the machine has a lens: what goes wrong is the solution's. Otherwise says why not. */
rung_status lab_grade(const lab_attempt *attempt, lab_grade_result *verdict);

#endif
