/* A wide-area network on one machine: one network namespace per node, joined by delays.
 *
 *   wan < commands
 *
 * Each namespace has a TUN device with the address 10.77.0.(i+1). Packets that a node sends are read
 * here, kept for the one-way delay of the pair, and written to the device of the receiver. No kernel
 * module beside TUN is needed. The namespaces end with this process, which ends with its input.
 *
 * Input, one command a line:
 *   nodes N                 first; N <= 120
 *   delay A B US            one-way delay from A to B, in microseconds; packets keep their order
 *   start                   make the network; answers "ready PID FD0 ... FDN-1": the namespace of
 *                           node i is /proc/PID/fd/FDi, its user namespace /proc/PID/ns/user
 *   stats                   answers "stats CARRIED DROPPED": packets since the last time
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_NODES = 120, MTU = 1500, BATCH = 64, MOST_QUEUED = 20000 };

struct packet {
    struct packet *next;
    int64_t due; /* ns */
    int length;
    unsigned char data[MTU];
};

/* Packets on the way from one node to another, in the order in which they were sent. */
struct path {
    struct packet *first, *last;
    int queued;
    int64_t delay;  /* ns */
    int64_t newest; /* due time of the last packet: no packet overtakes another */
};

static int nodes;
static int tun[MOST_NODES], space[MOST_NODES];
static struct path *paths; /* nodes x nodes */
static int64_t carried, dropped;

static void die(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    printf("error ");
    vprintf(format, rest);
    printf(": %s\n", strerror(errno));
    va_end(rest);
    fflush(stdout);
    exit(1);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void write_file(const char *name, const char *text)
{
    int file = open(name, O_WRONLY);
    if (file < 0 || write(file, text, strlen(text)) < 0) die("%s", name);
    close(file);
}

static void bring_up(const char *device, const char *address)
{
    int wire = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {0};
    struct sockaddr_in *where = (struct sockaddr_in *)&request.ifr_addr;
    snprintf(request.ifr_name, IFNAMSIZ, "%s", device);
    if (address) {
        where->sin_family = AF_INET;
        inet_pton(AF_INET, address, &where->sin_addr);
        if (ioctl(wire, SIOCSIFADDR, &request)) die("address of %s", device);
        inet_pton(AF_INET, "255.255.255.0", &where->sin_addr);
        if (ioctl(wire, SIOCSIFNETMASK, &request)) die("mask of %s", device);
        request.ifr_mtu = MTU;
        if (ioctl(wire, SIOCSIFMTU, &request)) die("MTU of %s", device);
    }
    if (ioctl(wire, SIOCGIFFLAGS, &request)) die("flags of %s", device);
    request.ifr_flags |= IFF_UP | IFF_RUNNING;
    if (ioctl(wire, SIOCSIFFLAGS, &request)) die("state of %s", device);
    close(wire);
}

static void make_network(void)
{
    if (unshare(CLONE_NEWNET)) { /* without rights: as the ruler of a user namespace of its own */
        char map[64];
        unsigned user = geteuid(), group = getegid();
        if (unshare(CLONE_NEWUSER)) die("user namespace");
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "%u %u 1", user, user);
        write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "%u %u 1", group, group);
        write_file("/proc/self/gid_map", map);
    }
    for (int i = 0; i < nodes; i++) {
        struct ifreq request = {0};
        char address[32];
        if (unshare(CLONE_NEWNET)) die("network namespace");
        tun[i] = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
        if (tun[i] < 0) die("/dev/net/tun");
        request.ifr_flags = IFF_TUN | IFF_NO_PI;
        snprintf(request.ifr_name, IFNAMSIZ, "wan");
        if (ioctl(tun[i], TUNSETIFF, &request)) die("TUN device");
        bring_up("lo", NULL);
        snprintf(address, sizeof address, "10.77.0.%d", i + 1);
        bring_up("wan", address);
        space[i] = open("/proc/self/ns/net", O_RDONLY);
        if (space[i] < 0) die("/proc/self/ns/net");
    }
    printf("ready %d", (int)getpid());
    for (int i = 0; i < nodes; i++) printf(" %d", space[i]);
    printf("\n");
    fflush(stdout);
}

static void receive(int from)
{
    for (int i = 0; i < BATCH; i++) {
        struct packet *packet = malloc(sizeof *packet);
        if (!packet) die("memory");
        packet->length = (int)read(tun[from], packet->data, MTU);
        const unsigned char *target = packet->data + 16;
        int to = target[3] - 1;
        int good = packet->length >= 20 && packet->data[0] >> 4 == 4 && target[0] == 10 &&
                   target[1] == 77 && target[2] == 0 && to >= 0 && to < nodes && to != from;
        if (!good) {
            int over = packet->length <= 0;
            free(packet);
            if (over) return;
            continue;
        }
        struct path *path = &paths[from * nodes + to];
        if (path->queued >= MOST_QUEUED) {
            dropped++;
            free(packet);
            continue;
        }
        int64_t sent = now();
        packet->due = sent + path->delay;
        if (packet->due < path->newest) packet->due = path->newest;
        path->newest = packet->due;
        packet->next = NULL;
        if (path->last) path->last->next = packet;
        else path->first = packet;
        path->last = packet;
        path->queued++;
    }
}

/* Deliver what is due; return the time of the next delivery, or -1. */
static int64_t deliver(void)
{
    int64_t next = -1;
    for (int i = 0; i < nodes * nodes; i++) {
        struct path *path = &paths[i];
        while (path->first) {
            struct packet *packet = path->first;
            if (now() < packet->due) {
                if (next < 0 || packet->due < next) next = packet->due;
                break;
            }
            if (write(tun[i % nodes], packet->data, (size_t)packet->length) < 0) dropped++;
            else carried++;
            path->first = packet->next;
            if (!path->first) path->last = NULL;
            path->queued--;
            free(packet);
        }
    }
    return next;
}

static int number_of_node(const char *word)
{
    int found = word ? atoi(word) : -1;
    if (found < 0 || found >= nodes) {
        errno = EINVAL;
        die("node %s", word ? word : "");
    }
    return found;
}

/* Carry out a line; return whether the network starts. */
static int command(char *line)
{
    char *word = strtok(line, " \n");
    if (!word) return 0;
    char *value = strtok(NULL, " \n");
    if (!strcmp(word, "start")) return 1;
    if (!strcmp(word, "stats")) {
        printf("stats %lld %lld\n", (long long)carried, (long long)dropped);
        carried = dropped = 0;
        fflush(stdout);
        return 0;
    }
    if (!value) {
        errno = EINVAL;
        die("command %s", word);
    }
    if (!strcmp(word, "nodes")) {
        nodes = atoi(value);
        if (nodes < 1 || nodes > MOST_NODES) {
            errno = EINVAL;
            die("nodes %s", value);
        }
        paths = calloc((size_t)(nodes * nodes), sizeof *paths);
        if (!paths) die("memory");
    } else if (!strcmp(word, "delay")) {
        int from = number_of_node(value), to = number_of_node(strtok(NULL, " \n"));
        char *delay = strtok(NULL, " \n");
        paths[from * nodes + to].delay = delay ? (int64_t)(atof(delay) * 1000) : 0;
    } else {
        errno = EINVAL;
        die("command %s", word);
    }
    return 0;
}

static void carry(void)
{
    static struct pollfd watched[MOST_NODES + 1];
    char line[4096];
    size_t filled = 0;
    watched[nodes] = (struct pollfd){.fd = 0, .events = POLLIN};
    for (int i = 0; i < nodes; i++) watched[i] = (struct pollfd){.fd = tun[i], .events = POLLIN};
    for (;;) {
        int64_t next = deliver(), wait = next - now();
        if (wait < 0) wait = 0;
        struct timespec limit = {wait / 1000000000, wait % 1000000000};
        if (ppoll(watched, (nfds_t)nodes + 1, next < 0 ? NULL : &limit, NULL) < 0) {
            if (errno == EINTR) continue;
            die("poll");
        }
        for (int i = 0; i < nodes; i++)
            if (watched[i].revents) receive(i);
        if (watched[nodes].revents) {
            ssize_t got = read(0, line + filled, sizeof line - filled - 1);
            if (got <= 0) return; /* the process that started the network is gone */
            filled += (size_t)got;
            for (char *end; (end = memchr(line, '\n', filled));) {
                char one[sizeof line];
                size_t length = (size_t)(end - line) + 1;
                memcpy(one, line, length);
                one[length] = '\0';
                filled -= length;
                memmove(line, end + 1, filled);
                command(one);
            }
            if (filled + 1 >= sizeof line) return;
        }
    }
}

int main(void)
{
    struct sched_param priority = {.sched_priority = 1};
    char *line = NULL;
    size_t room = 0;
    prctl(PR_SET_TIMERSLACK, 1);
    sched_setscheduler(0, SCHED_RR, &priority); /* refused without rights: deliveries are later */
    setvbuf(stdin, NULL, _IONBF, 0); /* input after the start is read by poll */
    while (getline(&line, &room, stdin) > 0)
        if (command(line)) {
            make_network();
            carry();
            return 0;
        }
    return 1;
}
