/* A module of device code that holds none, for transcripts: it has a list of kernels' registers, so that it counts as
 * built. */
extern const char rung_resources[];
const char rung_resources[] = "";
