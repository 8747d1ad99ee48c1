/* What a foreign function needs of XLA's C interface, version 0.x: each struct begins with its size in bytes and has
 * grown at its end only, so what was added later is read where the size covers it. */
#ifndef SHIM_XLA_FFI_H
#define SHIM_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_METADATA = 1, XLA_BUFFER = 1, XLA_SCALAR = 3, XLA_EXECUTE = 3 };
enum { XLA_S64 = 5, XLA_F32 = 11 };
enum { XLA_INVALID_ARGUMENT = 3, XLA_INTERNAL = 13 };

typedef struct xla_extension {
    size_t bytes;
    int kind; /* XLA_METADATA: an xla_metadata_extension */
    struct xla_extension *next;
} xla_extension;

typedef struct xla_head {
    size_t bytes;
    xla_extension *extension;
} xla_head;

typedef struct xla_version {
    xla_head head;
    int major, minor;
} xla_version;

typedef struct xla_metadata {
    size_t bytes;
    xla_version version;
    uint32_t traits;
} xla_metadata;

typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_buffer {
    xla_head head;
    int type;
    void *data;
    int64_t rank;
    int64_t *sizes;
} xla_buffer;

typedef struct xla_text {
    const char *at;
    size_t length;
} xla_text;

typedef struct xla_scalar {
    int type;
    void *value;
} xla_scalar;

typedef struct xla_list {
    xla_head head;
    int64_t count;
    int *kinds;
    void **items;
} xla_list;

typedef struct xla_attributes {
    xla_head head;
    int64_t count;
    int *kinds;
    xla_text **names;
    void **items;
} xla_attributes;

typedef struct xla_error xla_error;
typedef struct xla_execution xla_execution;

typedef struct xla_error_create {
    xla_head head;
    const char *message;
    int code;
} xla_error_create;

typedef struct xla_stream_get {
    xla_head head;
    xla_execution *execution;
    void *stream;
} xla_stream_get;

typedef struct xla_device_get {
    xla_head head;
    xla_execution *execution;
    int32_t device;
} xla_device_get;

typedef struct xla_api {
    xla_head head;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_create *);
    void *error_message, *error_destroy, *handler_register;
    xla_error *(*stream_get)(xla_stream_get *);
    void *others[12];
    xla_error *(*device_get)(xla_device_get *); /* since 0.2 */
} xla_api;

typedef struct xla_call {
    xla_head head;
    const xla_api *api;
    xla_execution *execution;
    int stage;
    xla_list arguments, results;
    xla_attributes attributes;
} xla_call;

#endif
