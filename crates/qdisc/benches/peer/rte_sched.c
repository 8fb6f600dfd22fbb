// DPDK's rte_sched under the load of the engine's benchmark: batches of 32 out and 32 in, 64 bytes, a random pipe and queue each, a
// backlog that stays. It reads how many pieces of 4,096 packets to run from each line of its input, and answers with the time of a good
// piece (one in twenty is better) and of the median piece, ns per packet. Written from DPDK's programmer's guide and API reference.
//
// rte_sched PIPES BACKLOG-PER-QUEUE
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_sched.h>

enum { BATCH = 32, PIECE = 4096, QUEUES = 16, STRICT = 12, LENGTH = 64, MOST_PIECES = 4096 };
static const uint64_t LINK = 100000000000ull / 8; // bytes per second

static struct rte_sched_port *port;
static uint32_t pipes, random_state = 12345;

static void fail(const char *what) {
    fprintf(stderr, "rte_sched: %s failed\n", what);
    exit(1);
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

// Sends a packet to a random queue: of the 16 in a pipe, 12 have a traffic class of their own and 4 share the last one.
static void renew(struct rte_mbuf *packet) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    uint32_t pipe = (uint64_t)random_state * pipes >> 32, queue = random_state % QUEUES;
    uint32_t traffic_class = queue < STRICT ? queue : STRICT;
    rte_sched_port_pkt_write(port, packet, 0, pipe, traffic_class, queue - traffic_class, RTE_COLOR_GREEN);
}

static void configure(void) {
    uint32_t power = 1;
    while (power < pipes)
        power <<= 1;
    struct rte_sched_subport_profile_params share = {.tb_rate = LINK, .tb_size = 1000000, .tc_period = 10};
    struct rte_sched_pipe_params pipe = {.tb_rate = LINK, .tb_size = 1000000, .tc_period = 40, .tc_ov_weight = 1};
    struct rte_sched_subport_params subport = {
        .n_pipes_per_subport_enabled = power, .pipe_profiles = &pipe, .n_pipe_profiles = 1, .n_max_pipe_profiles = 1};
    for (int i = 0; i < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; i++) {
        share.tc_rate[i] = pipe.tc_rate[i] = LINK;
        subport.qsize[i] = pipes == 1 ? 1024 : 64;
    }
    for (int i = 0; i < RTE_SCHED_BE_QUEUES_PER_PIPE; i++)
        pipe.wrr_weights[i] = 1;
    struct rte_sched_port_params params = {.name = "peer", .rate = LINK, .mtu = 1522, .frame_overhead = 24,
        .n_subports_per_port = 1, .subport_profiles = &share, .n_subport_profiles = 1, .n_max_subport_profiles = 1,
        .n_pipes_per_subport = power};
    port = rte_sched_port_config(&params);
    if (!port || rte_sched_subport_config(port, 0, &subport, 0))
        fail("configuring");
    for (uint32_t i = 0; i < pipes; i++)
        if (rte_sched_pipe_config(port, 0, i, 0))
            fail("configuring a pipe");
}

// A piece: as many packets out as in. What is refused because a queue is full is sent to another one.
static double piece(void) {
    struct rte_mbuf *batch[BATCH];
    double start = now_ns();
    for (int i = 0; i < PIECE / BATCH; i++) {
        int n = rte_sched_port_dequeue(port, batch, BATCH);
        for (int k = 0; k < n; k++)
            renew(batch[k]);
        rte_sched_port_enqueue(port, batch, n);
    }
    return (now_ns() - start) / PIECE;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    char core[16];
    snprintf(core, sizeof core, "%d", sched_getcpu());
    char *eal[] = {argv[0], "--no-huge", "-m", "1024", "--no-pci", "--no-telemetry", "--log-level=1", "-l", core, "--file-prefix=peer"};
    if (argc != 3 || rte_eal_init(sizeof eal / sizeof *eal, eal) < 0)
        fail("starting");
    pipes = atoi(argv[1]);
    configure();
    uint32_t backlog = pipes * QUEUES * atoi(argv[2]);
    struct rte_mempool *pool = rte_pktmbuf_pool_create("packets", backlog + 4 * BATCH, 0, 0, 256, 0);
    if (!pool)
        fail("making packets");
    for (uint32_t i = 0; i < backlog; i++) {
        struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);
        packet->pkt_len = packet->data_len = LENGTH;
        renew(packet);
        rte_sched_port_enqueue(port, &packet, 1);
    }
    static double pieces[MOST_PIECES];
    for (int count; scanf("%d", &count) == 1 && count > 0 && count <= MOST_PIECES;) {
        for (int i = 0; i < count; i++)
            pieces[i] = piece();
        qsort(pieces, count, sizeof *pieces, by_size);
        printf("%.2f %.2f\n", pieces[count / 20], pieces[count / 2]);
        fflush(stdout);
    }
    return 0;
}
