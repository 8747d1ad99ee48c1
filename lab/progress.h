/* What a learner has done: a JSON file in the user's data folder, and the files that the learner works on. */
#ifndef LAB_PROGRESS_H
#define LAB_PROGRESS_H

#include "lab/exercise.h"

typedef struct lab_progress {
    int tries, passed, hints; /* checks; whether one passed; hints shown */
} lab_progress;

/* Reads $XDG_DATA_HOME/rung/learn.json, else ~/.local/share/rung/learn.json. An exercise without an entry is all zeros.
 */
rung_status lab_progress_read(const lab_exercise *exercise, lab_progress *progress);
/* Changes one exercise's entry; everything else in the file stays. */
rung_status lab_progress_write(const lab_exercise *exercise, const lab_progress *progress);

/* Tells where the learner's file of an exercise stands: in RUNG_LEARN_DIR, else in ~/rung-learn. */
rung_status lab_learner_file(const lab_exercise *exercise, char *path, size_t bytes);
/* Copies the starting file there unless a file is there already; *copied says which. */
rung_status lab_learner_begin(const lab_exercise *exercise, char *path, size_t bytes, int *copied);
/* Puts the starting file back; another file that was there is kept beside it as FILE.old, and *kept says so. */
rung_status lab_learner_reset(const lab_exercise *exercise, char *path, size_t bytes, int *kept);

#endif
