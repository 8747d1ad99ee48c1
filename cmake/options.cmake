# Here is what can be switched, and the flags that every target shares.
# docs/install.md lists them all.
option(BUILD_SHARED_LIBS "librung as a shared library; OFF: static" ON)
option(RUNG_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(RUNG_STATIC "Build and install librung.a beside the shared library" OFF)
option(RUNG_BUNDLED "Link jansson into the program, as wheels need it" OFF)
option(RUNG_WERROR "Treat warnings as errors" OFF)
set(RUNG_WITH_CUDA "AUTO" CACHE STRING "Build the CUDA backend: AUTO (when nvcc is found), ON, OFF")
option(RUNG_WITH_MPI "Build the MPI transport where MPI is found" ON)
set(RUNG_SANITIZE "" CACHE STRING "Sanitizers for host code, as in -fsanitize=...: empty, address,undefined or thread")

add_library(rung_flags INTERFACE)
target_compile_options(rung_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wconversion -Wno-sign-conversion # a number is not cut without a word
  -fno-math-errno -ffp-contract=off
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=.)
if(RUNG_WERROR)
  target_compile_options(rung_flags INTERFACE -Werror)
endif()
if(RUNG_SANITIZE)
  target_compile_options(rung_flags INTERFACE -fsanitize=${RUNG_SANITIZE} -fno-omit-frame-pointer -g1
    -fno-sanitize-recover=all)
  target_link_options(rung_flags INTERFACE -fsanitize=${RUNG_SANITIZE})
endif()
