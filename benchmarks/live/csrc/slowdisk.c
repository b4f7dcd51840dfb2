/* A program whose disk is emulated: every fsync, fdatasync and msync takes a given time.
 *
 *   slowdisk FILE PROGRAM [ARGUMENT ...]
 *
 * FILE holds an int32, microseconds, in this machine's byte order; who writes it changes the delay
 * at once. The kernel tells this process of each call (seccomp, user notification), which answers for
 * the disk after the delay: nothing is flushed, so that the machine's own disk plays no part. It works
 * for every program, statically linked ones and virtual machines too, and needs no rights. Calls of
 * several threads are delayed beside each other; calls through io_uring and writes to files opened
 * with O_SYNC are not seen.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
enum { MOST_WAITING = 4096 };

static void die(const char *what)
{
    perror(what);
    exit(125);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int filter(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_msync, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) die("no_new_privs");
    /* killable: the signals by which Go moves its threads must not repeat a call */
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                        &program);
}

static void supervise(int listener, const volatile int32_t *delay)
{
    static uint64_t id[MOST_WAITING];
    static int64_t due[MOST_WAITING];
    int waiting = 0;
    for (;;) {
        int64_t next = -1, time = now();
        for (int i = 0; i < waiting;) {
            if (due[i] > time) {
                if (next < 0 || due[i] < next) next = due[i];
                i++;
                continue;
            }
            struct seccomp_notif_resp done = {.id = id[i]};
            ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &done); /* fails where the caller has ended */
            id[i] = id[--waiting];
            due[i] = due[waiting];
        }
        struct timespec rest = {(next - time) / 1000000000, (next - time) % 1000000000};
        struct pollfd watched = {.fd = listener, .events = POLLIN};
        if (ppoll(&watched, 1, next < 0 ? NULL : &rest, NULL) < 0 && errno != EINTR) die("poll");
        if (watched.revents & POLLHUP) return; /* the last process of the program has ended */
        if (!(watched.revents & POLLIN) || waiting == MOST_WAITING) continue;
        struct seccomp_notif call = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) continue;
        id[waiting] = call.id;
        due[waiting++] = now() + (int64_t)*delay * 1000;
    }
}

int main(int count, char **words)
{
    char word;
    int told[2], taken[2], listener = -1, status = 0;
    if (count < 3) return fprintf(stderr, "usage: slowdisk FILE PROGRAM ...\n"), 125;
    int file = open(words[1], O_RDONLY);
    if (file < 0 || pipe2(told, O_CLOEXEC) || pipe2(taken, O_CLOEXEC)) die(words[1]);
    const int32_t *delay = mmap(NULL, sizeof *delay, PROT_READ, MAP_SHARED, file, 0);
    if (delay == MAP_FAILED) die(words[1]);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, 9);
        listener = filter();
        if (listener < 0) die("seccomp");
        if (write(told[1], &listener, sizeof listener) < 0) die("pipe");
        close(told[1]);
        close(taken[1]);
        if (read(taken[0], &word, 1) < 0) die("pipe"); /* ends when the parent has the listener */
        close(listener);
        execvp(words[2], words + 2);
        die(words[2]);
    }
    close(told[1]);
    if (read(told[0], &listener, sizeof listener) != sizeof listener) die("pipe");
    int handle = (int)syscall(SYS_pidfd_open, child, 0);
    listener = (int)syscall(SYS_pidfd_getfd, handle, listener, 0);
    if (listener < 0) die("pidfd_getfd");
    close(taken[1]);
    supervise(listener, delay);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
