/* Fibers: the switch between two stacks, a new stack that begins in a kernel with its parameter struct in place, and
 * how the running thread gives way. This is for x86-64 as System V has it: a struct parameter lies on the stack above
 * the return address. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lens.h"

#include <string.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#error "the lens knows x86-64 only; the build leaves it out elsewhere"
#endif

__asm__(".text\n"
        ".globl lens_switch\n.hidden lens_switch\n.type lens_switch,@function\n"
        "lens_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size lens_switch, .-lens_switch\n"
        /* A kernel begins here: one that has other parameters than its struct finds zeros in their registers. */
        ".hidden lens_begins\n.type lens_begins,@function\n"
        "lens_begins:\n"
        "    xorl %edi, %edi\n    xorl %esi, %esi\n    xorl %edx, %edx\n    xorl %ecx, %ecx\n"
        "    xorl %r8d, %r8d\n    xorl %r9d, %r9d\n"
        "    ret\n"
        ".size lens_begins, .-lens_begins\n"
        /* A kernel returns here, with the stack as after a call. This aligns it and leaves for good. */
        ".hidden lens_returned\n.type lens_returned,@function\n"
        "lens_returned:\n"
        "    andq $-16, %rsp\n"
        "    call lens_thread_exit\n"
        "    ud2\n"
        ".size lens_returned, .-lens_returned\n");

extern void lens_begins(void) __attribute__((visibility("hidden")));
extern void lens_returned(void) __attribute__((visibility("hidden")));

void *lens_fiber_prepare(unsigned char *stack, size_t stack_bytes, void (*entry)(void), const void *argument,
                         size_t argument_bytes)
{
    uintptr_t at = ((uintptr_t)stack + stack_bytes - argument_bytes - 64) & ~(uintptr_t)63;
    memcpy((void *)at, argument, argument_bytes);
    uintptr_t *top = (uintptr_t *)at;
    *--top = (uintptr_t)lens_returned;
    *--top = (uintptr_t)entry;
    *--top = (uintptr_t)lens_begins;
    for (int i = 0; i < 6; i++)
        *--top = 0;
    return top;
}

unsigned char *lens_stacks;
size_t lens_stacks_bytes;

int lens_stacks_make(void)
{
    if (lens_stacks)
        return 0;
    lens_stacks_bytes = (size_t)LENS_MOST_THREADS * LENS_STACK_BYTES;
    void *memory =
        mmap(NULL, lens_stacks_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    lens_stacks = memory;
    for (int i = 0; i < LENS_MOST_THREADS; i++) {
        lens_now.thread[i].stack = lens_stacks + (size_t)i * LENS_STACK_BYTES;
        lens_now.thread[i].index = i;
        if (mprotect(lens_now.thread[i].stack, LENS_STACK_FENCE_BYTES, PROT_NONE) != 0) {
            munmap(memory, lens_stacks_bytes);
            lens_stacks = NULL;
            return -1;
        }
    }
    return 0;
}

bool lens_below_stack(uintptr_t address)
{
    return lens_in_stacks(address) && (address - (uintptr_t)lens_stacks) % LENS_STACK_BYTES < LENS_STACK_FENCE_BYTES;
}

void lens_wait(lens_state state)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    me->state = state;
    me->full_logs = 0;
    lens_switch(&me->sp, lens_now.scheduler_sp);
}

void lens_give_way(uintptr_t pc)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    me->wait_pc = pc;
    me->state = LENS_READY;
    lens_switch(&me->sp, lens_now.scheduler_sp);
}

void lens_look(uintptr_t pc)
{
    lens_now.looked = true;
    lens_now.thread[lens_now.current].full_logs = 0;
    lens_give_way(pc);
}

void lens_thread_exit(void)
{
    const lens_thread *me = &lens_now.thread[lens_now.current];
    if (me->store_pc)
        lens_find(
            RUNG_LENS_RACE, me->store_pc,
            "stores from shared memory, which is another block's once this one ends: nobody waits until it is read");
    lens_wait(LENS_DONE);
    __builtin_unreachable();
}

void lens_abandon(void)
{
    void *ignored;
    lens_now.abandoned = true;
    lens_switch(&ignored, lens_now.scheduler_sp);
    __builtin_unreachable();
}
