/* Load generator of the limit and small-request rows: frames prepared beforehand go out, answers
 * are counted and dropped. Its own processor time is part of what it prints.
 *
 *   load requests HOST PORT FRAMES CONNECTIONS DEPTH SECONDS
 *     FRAMES: a file of whole frames with their sizes in front. Each connection sends them in turn,
 *     with DEPTH unanswered at most; connection i begins with frame i.
 *   load drain HOST PORT FRAME OFFSET_AT RECORDS_AT BATCH_BYTES BATCH_RECORDS END CONNECTIONS SECONDS
 *     FRAME: one Fetch request. Its fetch offset lies at byte OFFSET_AT; in the answer the int32
 *     size of the records is at byte RECORDS_AT. All batches have the same size and record count.
 *     Begins again at offset 0 when END (exclusive) is reached.
 *
 * Prints one JSON object.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEAD_BYTES 512
#define RECEIVE_BYTES (256 * 1024)
#define LATENCIES_MAX (16u * 1024 * 1024)
#define DEPTH_MAX 64

typedef struct {
    int fd;
    int wants_write;
    char *frames; /* shared, or this connection's own copy when draining */
    int next_frame;
    size_t sent; /* of the frame that is going out */
    int unanswered;
    uint64_t began[DEPTH_MAX];
    unsigned first, last;
    char head[HEAD_BYTES];
    size_t head_filled;
    int64_t answer_left; /* bytes of the answer to come; -1: size not known yet */
    int64_t offset;
    int is_served; /* it has had an answer */
} Connection;

static char *frames;
static size_t *frame_at;
static int frame_count;
static int depth, draining, stopping;
static int offset_at, records_at;
static int64_t batch_bytes, batch_records, end_offset;
static int epoll, connections;
static uint64_t *latencies;
static int served, measuring;
static uint64_t began_ns, all_answers, answers, bytes_in, bytes_out, records_in, record_bytes_in;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "unexpected");
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void load_frames(const char *path) {
    int file = open(path, O_RDONLY);
    struct stat facts;
    if (file < 0 || fstat(file, &facts) < 0) fail(path);
    size_t size = (size_t)facts.st_size, got = 0;
    frames = malloc(size);
    while (got < size) {
        ssize_t n = read(file, frames + got, size - got);
        if (n <= 0) fail(path);
        got += (size_t)n;
    }
    close(file);
    frame_at = malloc(sizeof(size_t) * (size / 8 + 2));
    for (size_t at = 0; at < size;) {
        uint32_t length;
        memcpy(&length, frames + at, 4);
        frame_at[frame_count++] = at;
        at += 4 + be32toh(length);
    }
    frame_at[frame_count] = size;
}

static void watch(Connection *c, int write) {
    struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = c};
    if (c->wants_write == write) return;
    c->wants_write = write;
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event) < 0) fail("epoll_ctl");
}

static void send_more(Connection *c) {
    while (c->sent > 0 || (c->unanswered < depth && !stopping)) {
        size_t at = frame_at[c->next_frame];
        size_t size = frame_at[c->next_frame + 1] - at;
        if (c->sent == 0) {
            c->began[c->last++ % DEPTH_MAX] = now_ns();
            c->unanswered++;
            if (draining) {
                uint64_t offset = htobe64((uint64_t)c->offset);
                memcpy(c->frames + at + offset_at, &offset, 8);
            }
        }
        ssize_t n = send(c->fd, c->frames + at + c->sent, size - c->sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN) fail("send");
            if (c->sent == 0) { /* nothing of it went out: it begins later */
                c->last--;
                c->unanswered--;
            }
            watch(c, 1);
            return;
        }
        bytes_out += (uint64_t)n;
        c->sent += (size_t)n;
        if (c->sent == size) {
            c->sent = 0;
            c->next_frame = (c->next_frame + 1) % frame_count;
        }
    }
    watch(c, 0);
}

static void answered(Connection *c) {
    if (answers < LATENCIES_MAX) latencies[answers] = now_ns() - c->began[c->first % DEPTH_MAX];
    c->first++;
    answers++;
    all_answers++;
    served += !c->is_served;
    c->is_served = 1;
    c->unanswered--;
    if (draining) {
        uint32_t size;
        memcpy(&size, c->head + records_at, 4);
        int64_t batches = (int64_t)be32toh(size) / batch_bytes;
        if ((int32_t)be32toh(size) <= 0) fail("an answer without records");
        records_in += (uint64_t)(batches * batch_records);
        record_bytes_in += (uint64_t)(batches * batch_bytes);
        c->offset += batches * batch_records;
        if (c->offset >= end_offset) c->offset = 0;
    }
    c->head_filled = 0;
    c->answer_left = -1;
    if (!measuring && served == connections) { /* the clock begins when all are connected */
        measuring = 1;
        began_ns = now_ns();
        answers = bytes_in = bytes_out = records_in = record_bytes_in = 0;
    }
}

static void take(Connection *c, const char *data, size_t count) {
    while (count > 0) {
        size_t used;
        if (c->answer_left < 0) {
            used = 4 - c->head_filled < count ? 4 - c->head_filled : count;
            memcpy(c->head + c->head_filled, data, used);
            c->head_filled += used;
            if (c->head_filled == 4) {
                uint32_t size;
                memcpy(&size, c->head, 4);
                c->answer_left = (int64_t)be32toh(size);
            }
        } else {
            used = (uint64_t)c->answer_left < count ? (size_t)c->answer_left : count;
            size_t room = HEAD_BYTES - c->head_filled, keep = used < room ? used : room;
            memcpy(c->head + c->head_filled, data, keep);
            c->head_filled += keep;
            c->answer_left -= (int64_t)used;
        }
        data += used;
        count -= used;
        if (c->answer_left == 0) answered(c);
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double at_share(uint64_t count, double share) {
    if (count == 0) return 0;
    uint64_t at = (uint64_t)(share * (double)count);
    return (double)latencies[at < count ? at : count - 1] / 1000;
}

static void open_all(Connection *all, int count, const char *host, const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    inet_pton(AF_INET, host, &address.sin_addr);
    for (int i = 0; i < count; i++) {
        Connection *c = &all[i];
        int on = 1;
        c->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(c->fd, F_SETFL, O_NONBLOCK);
        c->answer_left = -1;
        c->next_frame = i % frame_count;
        c->frames = frames;
        if (draining) {
            c->frames = malloc(frame_at[frame_count]);
            memcpy(c->frames, frames, frame_at[frame_count]);
        }
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) < 0) fail("epoll_ctl");
    }
}

int main(int argc, char **argv) {
    if (argc < 8) return 2;
    draining = strcmp(argv[1], "drain") == 0;
    load_frames(argv[4]);
    int count = atoi(argv[draining ? 10 : 5]);
    double seconds = atof(argv[draining ? 11 : 7]);
    depth = draining ? 1 : atoi(argv[6]);
    if (draining) {
        offset_at = atoi(argv[5]);
        records_at = atoi(argv[6]);
        batch_bytes = atoll(argv[7]);
        batch_records = atoll(argv[8]);
        end_offset = atoll(argv[9]);
    }
    if (depth > DEPTH_MAX) return 2;
    epoll = epoll_create1(0);
    latencies = malloc(sizeof(uint64_t) * LATENCIES_MAX);
    char *buffer = malloc(RECEIVE_BYTES);
    Connection *all = calloc((size_t)count, sizeof(Connection));
    open_all(all, count, argv[2], argv[3]);

    uint64_t ended = 0, length = (uint64_t)(seconds * 1e9);
    connections = count;
    for (int i = 0; i < count; i++) send_more(&all[i]);
    int waiting = 1;
    while (waiting) {
        struct epoll_event events[256];
        int ready = epoll_wait(epoll, events, 256, 5000);
        if (ready <= 0) fail("no answer for five seconds");
        for (int i = 0; i < ready; i++) {
            Connection *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                ssize_t n = recv(c->fd, buffer, RECEIVE_BYTES, 0);
                if (n == 0) fail("the broker closed the connection");
                if (n < 0 && errno != EAGAIN) fail("recv");
                if (n > 0) {
                    bytes_in += (uint64_t)n;
                    take(c, buffer, (size_t)n);
                }
            }
            send_more(c);
        }
        uint64_t at = now_ns();
        if (measuring && at >= began_ns + length) {
            stopping = 1;
            ended = at;
            waiting = 0;
            for (int i = 0; i < count; i++) waiting |= all[i].unanswered > 0;
        }
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    uint64_t kept = answers < LATENCIES_MAX ? answers : LATENCIES_MAX;
    qsort(latencies, kept, sizeof(uint64_t), by_value);
    printf("{\"all_answers\": %llu, \"answers\": %llu, \"seconds\": %.6f, \"bytes_in\": %llu, \"bytes_out\": %llu, "
           "\"records_in\": %llu, \"record_bytes_in\": %llu, \"cpu\": %.4f, "
           "\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f}\n",
           (unsigned long long)all_answers, (unsigned long long)answers,
           (double)(ended - began_ns) / 1e9,
           (unsigned long long)bytes_in, (unsigned long long)bytes_out,
           (unsigned long long)records_in, (unsigned long long)record_bytes_in,
           (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6 +
               (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6,
           at_share(kept, 0.5), at_share(kept, 0.99), at_share(kept, 0.999));
    return 0;
}
